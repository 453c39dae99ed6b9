"""`pg-mdistinct risk`: what an adversary can know after a release, in figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from heapq import nsmallest
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text

from pg_mdistinct.cli.database import connected, dsn_option
from pg_mdistinct.cli.progress import progress_bar
from pg_mdistinct.cli.risk_charts import figures_table, histogram, quantiles
from pg_mdistinct.client import VersionRisk

if TYPE_CHECKING:
    from pg_mdistinct.risk_figures import RiskFigures


@click.command()
@click.argument("dataset")
@click.option("--at", "at_release", type=int, help="As it was after this release, not the latest.")
@click.option("--top", default=10, show_default=True, help="Versions to list, riskiest first.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures for programs to read.")
@dsn_option
def risk(dataset: str, at_release: int | None, top: int, as_json: bool, dsn: str | None) -> None:
    """Show how sure an adversary can be of the values of DATASET."""
    with connected(dsn) as client, progress_bar(f"Attacking {dataset}") as on_progress:
        versions = client.risk(dataset, at_release, on_progress=on_progress)
    by_release = _by_release(versions)
    total = _figures(versions)
    riskiest = nsmallest(top, versions, key=lambda v: (-v.risk, v.record_id, v.release))
    if as_json:
        report = {
            "dataset": dataset,
            "at_release": at_release or max(by_release, default=None),
            "disclosed": sum(version.candidates == 1 for version in versions),
            "total": asdict(total),
            "releases": {release: asdict(_figures(part)) for release, part in by_release.items()},
            "top": [asdict(version) for version in riskiest],
        }
        click.echo(json.dumps(report, ensure_ascii=False, indent=2))
    elif not versions:
        click.echo(f"{dataset}: nothing has been published yet")
    else:
        _show(Console(), by_release, versions, riskiest)


def _by_release(versions: Sequence[VersionRisk]) -> dict[int, list[VersionRisk]]:
    parts: dict[int, list[VersionRisk]] = {}
    for version in versions:
        parts.setdefault(version.release, []).append(version)
    return dict(sorted(parts.items()))


def _figures(versions: Sequence[VersionRisk]) -> RiskFigures:
    # NumPy would slow every command down if it were imported above.
    import numpy as np

    from pg_mdistinct.risk_figures import RiskFigures

    return RiskFigures.of(np.array([version.risk for version in versions], dtype=np.float64))


def _show(
    console: Console,
    by_release: dict[int, list[VersionRisk]],
    versions: Sequence[VersionRisk],
    riskiest: Sequence[VersionRisk],
) -> None:
    parts: list[tuple[object, Sequence[VersionRisk]]] = list(by_release.items())
    if len(parts) > 1:
        parts.append(("all", versions))
    console.print(figures_table(_HEADINGS, [_row(name, part) for name, part in parts]))
    total = _figures(versions)
    console.print(Text("Risk: how sure the adversary is of the true value", style="bold"))
    console.print(quantiles(total))
    console.print(histogram(total))
    if riskiest:
        console.print(Text("\nRiskiest versions", style="bold"))
        console.print(
            figures_table(
                ("record", "release", "risk", "candidates"),
                [(v.record_id, v.release, v.risk, v.candidates) for v in riskiest],
            )
        )


_HEADINGS = ("release", "versions", "disclosed", "mean", "median", "90%", "max")


def _row(name: object, versions: Sequence[VersionRisk]) -> tuple[object, ...]:
    figures = _figures(versions)
    return (
        str(name),
        figures.versions,
        sum(version.candidates == 1 for version in versions),
        figures.mean,
        figures.quantiles["0.5"],
        figures.quantiles["0.9"],
        figures.max,
    )
