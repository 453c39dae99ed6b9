"""`pg-mdistinct register`, `publish`, `verify`, `releases`: the SQL calls at a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pg_mdistinct.cli.database import connected, dsn_option
from pg_mdistinct.client import Publication


@click.command()
@click.argument("dataset")
@click.argument("source")
@click.option("--id", "id_column", required=True, help="Column that tells records apart.")
@click.option(
    "--qi",
    "qi_columns",
    required=True,
    multiple=True,
    help="Quasi-identifying column; give it once for each.",
)
@click.option("--sensitive", "sensitive_column", required=True, help="Column to protect.")
@click.option("-m", "m", required=True, type=int, help="Distinct values in each group, at least.")
@click.option(
    "--variant",
    type=click.Choice(["m-distinct", "m-distinct*"]),
    default="m-distinct",
    show_default=True,
)
@click.option("--max-risk", type=float, help="Bound on the adversary's best guess.")
@click.option("--updates", help="Table of allowed updates: old_value, new_value, probability.")
@dsn_option
def register(
    dataset: str,
    source: str,
    id_column: str,
    qi_columns: Sequence[str],
    sensitive_column: str,
    m: int,
    variant: str,
    max_risk: float | None,
    updates: str | None,
    dsn: str | None,
) -> None:
    """Register the table or view SOURCE as DATASET."""
    with connected(dsn) as client:
        client.register(
            dataset, source, id_column, qi_columns, sensitive_column, m, variant, max_risk
        )
        if updates is not None:
            client.load_updates(dataset, updates)
    click.echo(f"{dataset} is registered; publish it with: pg-mdistinct publish {dataset}")


@click.command()
@click.argument("dataset")
@click.option("--wait", is_flag=True, help="Wait for a publication of the dataset that is running.")
@click.option("--preview", is_flag=True, help="Say what would be published; write nothing.")
@dsn_option
def publish(dataset: str, wait: bool, preview: bool, dsn: str | None) -> None:
    """Publish DATASET as its source is now."""
    with connected(dsn) as client, Console(stderr=True).status(f"Publishing {dataset} ..."):
        figures = client.preview(dataset) if preview else client.publish(dataset, wait=wait)
    Console().print(publication_table(figures))


@click.command()
@click.argument("dataset")
@dsn_option
def verify(dataset: str, dsn: str | None) -> None:
    """Check the whole history of DATASET; exit code 1 if it breaks the principle."""
    with connected(dsn) as client, Console(stderr=True).status(f"Verifying {dataset} ..."):
        violations = client.verify(dataset)
    if not violations:
        click.echo(f"{dataset}: no violation")
        return
    Console().print(
        table(
            ("release", "gid", "record_id", "rule", "detail"),
            [(v.release, v.gid, v.record_id, v.rule, v.detail) for v in violations],
        )
    )
    raise SystemExit(1)


@click.command()
@click.argument("dataset", required=False)
@dsn_option
def releases(dataset: str | None, dsn: str | None) -> None:
    """List what has been published, of DATASET or of all."""
    with connected(dsn) as client:
        found = client.releases(dataset)
    Console().print(
        table(
            (
                "dataset",
                "release",
                "published at",
                "m",
                "variant",
                "rows",
                "groups",
                "counterfeits",
            ),
            [
                (
                    info.dataset,
                    info.release,
                    f"{info.published_at:%Y-%m-%d %H:%M}",
                    info.m,
                    info.variant,
                    info.rows,
                    info.groups,
                    info.counterfeits,
                )
                for info in found
            ],
        )
    )


def publication_table(figures: Publication) -> Table:
    """The row that a publication returns, one figure a line."""
    grid = Table.grid(padding=(0, 2))
    for name, value in asdict(figures).items():
        shown = "not measured" if value is None else value
        grid.add_row(name, Text(f"{shown:.4f}" if isinstance(shown, float) else str(shown)))
    return grid


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table of plain cells: values of users are shown as they are, never as markup."""
    grid = Table(*headings, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for row in rows:
        grid.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    return grid
