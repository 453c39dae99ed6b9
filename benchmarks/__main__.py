"""Run the benchmarks: a table for people, JSON for machines."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from benchmarks import publishing, risk

BENCHMARKS = {"publishing": publishing.measure, "risk": risk.measure}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(BENCHMARKS)))
@click.option("--scale", default=1.0, show_default=True, help="Size of the workload.")
@click.option("--output", default="bench.json", show_default=True, type=click.Path(path_type=Path))
def main(names: tuple[str, ...], scale: float, output: Path) -> None:
    """Measure NAMES, or everything."""
    console = Console()
    figures = {
        name: BENCHMARKS[name](lambda text: console.print(text, style="dim"), scale)
        for name in names or BENCHMARKS
    }
    table = Table("benchmark", "figure", "value")
    for name, found in figures.items():
        for figure, value in found.items():
            table.add_row(name, figure, f"{value:,.3f}")
    console.print(table)
    output.write_text(json.dumps(figures, indent=2) + "\n")
    console.print(f"written to {output}")


if __name__ == "__main__":
    main()
