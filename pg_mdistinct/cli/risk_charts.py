"""How risk is shown at a terminal: a table by release, quantiles, and a small histogram."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    # It imports NumPy, which would slow every command down.
    from pg_mdistinct.risk_figures import RiskFigures

BAR = 40
# From an eighth of a sign to a whole one.
_BLOCKS = "▏▎▍▌▋▊▉█"


def figures_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Return a table of numbers, aligned to the right except for the first column."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(_cell(cell)) for cell in row))
    return table


def quantiles(figures: RiskFigures) -> Text:
    """Return one line: which share of the versions has at most which risk."""
    names = {"0": "min", "0.5": "median", "1": "max"}
    return Text("  ").join(
        Text.assemble(
            (names.get(share, f"{float(share):.0%}"), "dim"), " ", (f"{level:.3f}", "bold")
        )
        for share, level in figures.quantiles.items()
    )


def histogram(figures: RiskFigures) -> Text:
    """Return a bar for each tenth of risk that some version has, and those between."""
    used = [i for i, count in enumerate(figures.histogram) if count]
    most, bins = max(figures.histogram), len(figures.histogram)
    lines = []
    for i in range(used[0], used[-1] + 1) if used else ():
        count = figures.histogram[i]
        share = f"{count:>9,} {count / figures.versions:>6.1%} "
        style = "red" if i == bins - 1 else "blue"
        label = f"{i / bins:>4.0%} – {(i + 1) / bins:>4.0%}"
        lines.append(Text.assemble((label, "dim"), share, (_bar(count / most), style)))
    return Text("\n").join(lines)


def _bar(share: float) -> str:
    eighths = round(share * BAR * 8)
    if share and not eighths:
        eighths = 1
    whole, rest = divmod(eighths, 8)
    return _BLOCKS[-1] * whole + (_BLOCKS[rest - 1] if rest else "")


def _cell(cell: object) -> str:
    if isinstance(cell, float):
        return f"{cell:.3f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
