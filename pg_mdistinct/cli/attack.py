"""`pg-mdistinct attack`: the paper's adversary, turned on the releases of any tool.

The core is imported when it is called: Numba would slow every command down.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
import psycopg
from rich.console import Console
from rich.text import Text

from pg_mdistinct.cli.database import database_dsn, dsn_option
from pg_mdistinct.cli.risk_charts import figures_table, histogram, quantiles
from pg_mdistinct.core.errors import MdistinctError

if TYPE_CHECKING:
    from pg_mdistinct.foreign import AttackReport, ForeignReleases, ModelRow, ReleaseRow
    from pg_mdistinct.foreign.report import Disclosed, JointFigures, ReleaseFigures


@click.command()
@click.argument("releases", required=False, type=click.Path(path_type=Path))
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    help="CSV file of possible updates: old_value, new_value, probability.",
)
@click.option("--table", help="Read the releases from this table or view of the database.")
@click.option("--query", help="Read the releases from this query.")
@click.option("--model-table", help="Read the update model from this table or view.")
@click.option("--release-column", default="release", show_default=True)
@click.option("--record-column", default="record_id", show_default=True)
@click.option("--group-column", default="gid", show_default=True)
@click.option("--value-column", default="value", show_default=True, help="The sensitive value.")
@click.option(
    "--consecutive",
    is_flag=True,
    help="Releases follow each other step by step, whatever their numbers are.",
)
@click.option("--joint", is_flag=True, help="Look at all groups at once, too; for small data.")
@click.option("--joint-limit", type=int, help="Steps that the joint attack may take.")
@click.option("--json", "as_json", is_flag=True, help="Print the report for programs to read.")
@dsn_option
def attack(
    releases: Path | None,
    model: Path | None,
    table: str | None,
    query: str | None,
    model_table: str | None,
    release_column: str,
    record_column: str,
    group_column: str,
    value_column: str,
    consecutive: bool,
    joint: bool,
    joint_limit: int | None,
    as_json: bool,
    dsn: str | None,
) -> None:
    """Attack published tables: who is disclosed by all of them together?

    RELEASES is a CSV file with one line for each published row: its release, the record that it
    belongs to (nothing for a counterfeit), its group and its sensitive value. With --table or
    --query the rows come from a database instead. An adversary is assumed to know who is in which
    group, and what --model says of how values change.
    """
    if sum(source is not None for source in (releases, table, query)) != 1:
        raise click.UsageError("Give the releases once: as a CSV file, --table or --query.")
    if (model is None) == (model_table is None):
        raise click.UsageError("Give the update model once: as --model or --model-table.")
    from pg_mdistinct import foreign

    columns = foreign.Columns(release_column, record_column, group_column, value_column)
    needs_database = releases is None or model_table is not None
    status = Console(stderr=True).status("Reading ...")
    with _explained(), status, _connection(dsn, needs_database) as connection:
        updates: Iterable[ModelRow]
        if model is not None:
            updates = foreign.csv_model(model)
        else:
            updates = foreign.database_model(_open(connection), table=model_table)
        rows: Iterable[ReleaseRow]
        if releases is not None:
            rows = foreign.csv_releases(
                releases, columns, lambda share: status.update(f"Reading {share:.0%} ...")
            )
        else:
            rows = foreign.database_releases(
                _open(connection), table=table, query=query, columns=columns
            )
        loaded = foreign.load(rows, updates, consecutive=consecutive)
        status.update("Attacking ...")
        limit = {} if joint_limit is None else {"joint_limit": joint_limit}
        report = foreign.examine(loaded, joint=joint, **limit)
    if as_json:
        click.echo(json.dumps(asdict(report), ensure_ascii=False, indent=2))
    else:
        _show(Console(), loaded, report)


@contextmanager
def _connection(dsn: str | None, needed: bool) -> Iterator[psycopg.Connection | None]:
    """Connect for reading only, where something is to be read from a database."""
    if not needed:
        yield None
        return
    with psycopg.connect(database_dsn(dsn), application_name="pg-mdistinct") as connection:
        connection.read_only = True
        yield connection


def _open(connection: psycopg.Connection | None) -> psycopg.Connection:
    assert connection is not None, "it was connected to where it is needed"
    return connection


@contextmanager
def _explained() -> Iterator[None]:
    """Turn trouble into a message without a traceback."""
    try:
        yield
    except (MdistinctError, psycopg.Error) as error:
        raise click.ClickException(str(error).strip()) from error


def _show(console: Console, loaded: ForeignReleases, report: AttackReport) -> None:
    total = report.total
    console.print(
        Text(
            f"{_count(total.versions, 'version')} of {_count(report.records, 'record')} in "
            f"{_count(len(report.releases), 'release')}; "
            f"the model knows {_count(len(loaded.model), 'value')}."
        )
    )
    _warn(console, report)
    rows = [*report.releases, *([total] if len(report.releases) > 1 else [])]
    console.print(figures_table(_HEADINGS, map(_release_row, rows)))
    _show_disclosed(console, report)
    console.print(Text("\nRisk: how sure the adversary is of the true value", style="bold"))
    console.print(quantiles(total.risk))
    console.print(histogram(total.risk))
    if report.joint is not None:
        _show_joint(console, report.joint)


_HEADINGS = (
    "release",
    "versions",
    "pruned",
    "disclosed",
    "share",
    "mean",
    "median",
    "max",
)


def _release_row(figures: ReleaseFigures) -> tuple[object, ...]:
    return (
        figures.release,
        figures.versions,
        figures.pruned,
        figures.disclosed,
        f"{figures.disclosed_share:.1%}",
        figures.risk.mean,
        figures.risk.quantiles.get("0.5", 0.0),
        figures.risk.max,
    )


def _show_disclosed(console: Console, report: AttackReport) -> None:
    total = report.total
    if not total.disclosed:
        words = "Nobody is disclosed"
        words += "." if total.pruned else ", and no candidate can be excluded."
        console.print(Text(words, style="bold green" if not total.pruned else "bold"))
        return
    console.print(
        Text(
            f"Disclosed: {total.disclosed:,} of {_count(total.versions, 'published value')} "
            f"({total.disclosed_share:.1%}), of {report.disclosed_records:,} of "
            f"{_count(report.records, 'record')}",
            style="bold red",
        )
    )
    _show_names(console, report.first_disclosed, report.disclosed_records)


def _show_names(console: Console, named: list[Disclosed], records: int) -> None:
    for one in named:
        line = Text(f"  {one.record}: {one.value} in release {one.release}")
        if one.candidates > 1:
            line.append(f", out of {one.candidates} candidates", "dim")
        if one.versions > 1:
            line.append(f", and {_count(one.versions - 1, 'other version')}", "dim")
        console.print(line)
    if records > len(named):
        console.print(Text(f"  and {_count(records - len(named), 'other record')}", style="dim"))


def _show_joint(console: Console, joint: JointFigures) -> None:
    console.print(Text("\nJoint attack: all groups at once", style="bold"))
    console.print(
        Text(
            f"Beyond the graphs of single records it excludes "
            f"{_count(joint.pruned_beyond, 'candidate')}, discloses "
            f"{_count(joint.disclosed_beyond, 'value')} and lifts the risk of "
            f"{_count(joint.risen, 'version')}."
        )
    )
    _show_names(console, joint.first_disclosed_beyond, joint.disclosed_records_beyond)
    console.print(quantiles(joint.risk))
    console.print(histogram(joint.risk))


def _warn(console: Console, report: AttackReport) -> None:
    if not report.impossible_updates:
        return
    first = ", ".join(
        f"{update.record} ({update.old_value} -> {update.new_value} in release {update.release})"
        for update in report.first_impossible_updates
    )
    console.print(
        Text(
            f"The model calls {_count(report.impossible_updates, 'update')} impossible, so it "
            f"misleads the adversary about those records: {first}",
            style="yellow",
        )
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
