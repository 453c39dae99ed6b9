"""`pg-mdistinct doctor`: looks a server and a dataset over, and says what to fix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import click
from rich.console import Console
from rich.text import Text

from pg_mdistinct.cli.database import database_dsn, dsn_option, open_connection
from pg_mdistinct.cli.doctor.dataset import dataset_findings
from pg_mdistinct.cli.doctor.findings import (
    OK,
    PROBLEM,
    SKIPPED,
    WARNING,
    Finding,
    made,
    ok,
)
from pg_mdistinct.cli.doctor.server import server_findings
from pg_mdistinct.cli.output import json_option, print_json

_STYLES = {OK: "green", SKIPPED: "dim", WARNING: "yellow", PROBLEM: "bold red"}


@click.command()
@click.argument("dataset", required=False)
@json_option
@dsn_option
def doctor(dataset: str | None, as_json: bool, dsn: str | None) -> None:
    """Check the server, and DATASET if it is given, from top to bottom.

    Says what to do about everything that is wrong; exit code 1 if something is. Changes nothing.
    A superuser may look at all of it; what others may not see is skipped.
    """
    found = []
    with Console(stderr=True).status("Examining ..."):
        for finding in examined(database_dsn(dsn), dataset):
            found.append(finding)
            if not as_json:
                _print(finding)
    problems = sum(finding.status == PROBLEM for finding in found)
    if as_json:
        print_json([asdict(finding) for finding in found])
    else:
        click.echo(f"{problems or 'no'} problem{'' if problems == 1 else 's'}")
    if problems:
        raise SystemExit(1)


def examined(dsn: str, dataset: str | None) -> Iterator[Finding]:
    """All findings, in one session; those of the dataset only where the server is sound."""
    connection = None

    def connect() -> Finding:
        nonlocal connection
        connection = open_connection(dsn)
        connection.autocommit = True
        info = connection.info
        return ok("connection", f"{info.user} at {info.host or 'this machine'}, {info.dbname}")

    yield made("connection", connect)
    if connection is None:
        return
    with connection:
        sound = True
        for finding in server_findings(connection):
            yield finding
            sound = sound and finding.status != PROBLEM
        if sound and dataset is not None:
            yield from dataset_findings(connection, dataset)


def _print(finding: Finding) -> None:
    line = Text.assemble(
        (f"{finding.status:<8}", _STYLES[finding.status]), f" {finding.check}: {finding.detail}"
    )
    console = Console(soft_wrap=True)
    console.print(line)
    if finding.fix:
        console.print(Text(f"         Fix: {finding.fix}"))
