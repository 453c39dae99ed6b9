"""How results are printed: tables for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the result for programs to read."
)


def print_json(result: object) -> None:
    """Prints a result of any verb: figures as an object, rows as a list of objects."""
    click.echo(json.dumps(result, ensure_ascii=False, indent=2, default=_plain))


def print_figures(figures: Mapping[str, object]) -> None:
    """Prints a single row, one figure a line."""
    grid = Table.grid(padding=(0, 2))
    for name, value in figures.items():
        grid.add_row(name, Text(_shown(value)))
    Console().print(grid)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints rows of plain cells: values of users are shown as they are, never as markup."""
    grid = Table(*headings, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for row in rows:
        grid.add_row(*(Text("" if cell is None else _shown(cell)) for cell in row))
    Console().print(grid)


def _shown(value: object) -> str:
    if value is None:
        return "not measured"
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return str(value)


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
