"""Run the benchmarks: a table for people, JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from benchmarks import (
    backend,
    core,
    history,
    nested,
    others,
    publishing,
    quality,
    risk,
    shapes,
    ways,
)
from benchmarks.database import Run
from benchmarks.figures import Figure

BENCHMARKS: dict[str, Callable[[Run], list[Figure]]] = {
    "publishing": publishing.measure,
    "history": history.measure,
    "core": core.measure,
    "backend": backend.measure,
    "quality": quality.measure,
    "nested": nested.measure,
    "others": others.measure,
    "shapes": shapes.measure,
    "ways": ways.measure,
    "risk": risk.measure,
}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(BENCHMARKS)))
@click.option("--scale", default=1.0, show_default=True, help="Size of the workload.")
@click.option("--output", default="bench.json", show_default=True, type=click.Path(path_type=Path))
def main(names: tuple[str, ...], scale: float, output: Path) -> None:
    """Measure NAMES, or everything."""
    console = Console()
    run = Run(lambda text: console.print(text, style="dim", markup=False), scale)
    try:
        figures = {name: BENCHMARKS[name](run) for name in names or BENCHMARKS}
    finally:
        run.end()
    console.print(_table(figures))
    found = {
        name: [asdict(figure) | {"held": figure.held} for figure in part]
        for name, part in figures.items()
    }
    output.write_text(json.dumps({"scale": scale, "figures": found}, indent=2) + "\n")
    console.print(f"written to {output}")


def _table(figures: dict[str, list[Figure]]) -> Table:
    table = Table("benchmark", "figure", "value", "bar", "aim", "held")
    words = {True: "yes", False: "[bold red]no[/]", None: ""}
    for name, part in figures.items():
        for figure in part:
            bar, aim = (
                "" if number is None else f"{figure.sign} {number:g}"
                for number in (figure.bar, figure.aim)
            )
            table.add_row(name, figure.what, f"{figure.value:,.4g}", bar, aim, words[figure.held])
    return table


if __name__ == "__main__":
    main()
