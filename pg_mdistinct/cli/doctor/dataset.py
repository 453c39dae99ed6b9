"""What the doctor checks of one dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import psycopg

from pg_mdistinct.cli.doctor.findings import (
    OK,
    Finding,
    findings_of,
    ok,
    problem,
    skipped,
    warning,
)
from pg_mdistinct.cli.doctor.server import one, value
from pg_mdistinct.client import Client, Dataset, DatasetBusyError, DatasetInfo

_SHOWN = 5


@dataclass(frozen=True)
class _Patient:
    """A dataset under examination."""

    connection: psycopg.Connection[Any]
    name: str

    @cached_property
    def dataset(self) -> Dataset:
        """The dataset of the client."""
        return Client(self.connection).dataset(self.name)

    @property
    def info(self) -> DatasetInfo:
        """What was registered."""
        return self.dataset.info

    @cached_property
    def present(self) -> set[str]:
        """The sensitive values of the source, read as a publication would read it."""
        query = "SELECT present FROM mdistinct.sensitive_values(%s::name, '{}'::text[])"
        return set(value(self.connection, query, self.name))


def dataset_findings(connection: psycopg.Connection[Any], name: str) -> Iterator[Finding]:
    """Looks at what the next release needs, then at those that were published."""
    patient = _Patient(connection, name)
    future = {
        "dataset": _registered,
        "source": _source,
        "update model": _model,
        "next release": _next_release,
    }
    past = {"history": _history, "schedule": _schedule, "last run": _last_run}
    for finding in _findings(patient, future):
        yield finding
        if finding.check == "dataset" and finding.status != OK:
            return
    # Worth a look also where no further release is possible.
    yield from _findings(patient, past)


def _findings(
    patient: _Patient, checks: Mapping[str, Callable[[_Patient, str], Finding]]
) -> Iterator[Finding]:
    return findings_of(
        patient.connection,
        [(name, partial(look, patient, name)) for name, look in checks.items()],
        foundations=("dataset", "source", "update model"),
    )


def _registered(patient: _Patient, name: str) -> Finding:
    info = patient.info
    return ok(name, f"{info.dataset}: {info.variant}, m = {info.m}, {info.last_release} releases")


def _source(patient: _Patient, name: str) -> Finding:
    source = f"{patient.info.source_schema}.{patient.info.source_table}"
    if not patient.present:
        return warning(name, f"{source} is empty", "Publish when it has rows.")
    column = patient.info.sensitive_column
    return ok(name, f"{source} has {len(patient.present)} different values in {column}")


_KNOWN = """
SELECT u.old_value FROM mdistinct.updates AS u WHERE u.dataset = %s::name
UNION SELECT u.new_value FROM mdistinct.updates AS u WHERE u.dataset = %s::name
"""


def _model(patient: _Patient, name: str) -> Finding:
    if patient.info.variant == "m-invariance":
        return ok(name, "none: under m-invariance values never change")
    known = {row[0] for row in patient.connection.execute(_KNOWN, [patient.name] * 2)}
    if unknown := sorted(patient.present - known):
        shown = ", ".join(f'"{each}"' for each in unknown[:_SHOWN])
        more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
        return problem(
            name,
            f"does not know {shown}{more}",
            "Say what these values may become: mdistinct_allow_update, or pg-mdistinct learn",
        )
    return ok(name, f"knows all of them, and {len(known - patient.present)} more")


def _next_release(patient: _Patient, name: str) -> Finding:
    try:
        figures = patient.dataset.preview()
    except DatasetBusyError as error:
        return skipped(name, error.message)
    return ok(
        name,
        f"release {figures.release} would have {figures.records} records in {figures.groups}"
        f" groups, with {figures.counterfeits} counterfeits; {figures.withheld} withheld",
    )


def _history(patient: _Patient, name: str) -> Finding:
    if not patient.info.last_release:
        return ok(name, "nothing has been published yet")
    violations = patient.dataset.verify()
    if not violations:
        return ok(name, f"all releases up to {patient.info.last_release} keep the principle")
    first = violations[0]
    return problem(
        name,
        f"{len(violations)} violations, first in release {first.release}: {first.rule}",
        f"Publish no more, see: pg-mdistinct verify {patient.name}, and restore from a backup"
        " what was changed behind the plugin's back",
    )


def _schedule(patient: _Patient, name: str) -> Finding:
    query = "SELECT s.cron, s.next_run FROM mdistinct.schedule AS s WHERE s.dataset = %s::name"
    row = one(patient.connection, query, patient.name)
    if row is None:
        return ok(name, "none")
    job = "SELECT FROM cron.job AS j WHERE j.jobname = %s AND j.active"
    if one(patient.connection, job, f"mdistinct:{patient.name}") is None:
        return problem(
            name,
            f"{row[0]}, but pg_cron has no active job for it",
            f'Run: pg-mdistinct schedule {patient.name} "{row[0]}"',
        )
    return ok(name, f"{row[0]}, next {row[1]:%Y-%m-%d %H:%M %Z}")


_LAST_RUN = """
SELECT mdistinct.run_status(r.run, r.status), r.started_at, r.message, r.hint
FROM mdistinct.runs AS r WHERE r.dataset = %s::name ORDER BY r.run DESC LIMIT 1
"""


def _last_run(patient: _Patient, name: str) -> Finding:
    row = one(patient.connection, _LAST_RUN, patient.name)
    if row is None:
        return ok(name, "none of a schedule")
    status, started_at, message, hint = row
    told = f"{status}, begun {started_at:%Y-%m-%d %H:%M %Z}"
    if status == "failed":
        return problem(name, f"{told}: {message}", hint or "See the server's log.")
    if status == "interrupted":
        return problem(
            name,
            f"{told}; its session is gone, and nothing of it was kept",
            f"See the server's log for the reason, then run: pg-mdistinct publish {patient.name}",
        )
    return ok(name, told)
