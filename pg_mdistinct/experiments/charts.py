"""Draws the charts of experiments: the same table gives the same file, byte by byte."""

from __future__ import annotations

import io
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from pg_mdistinct.experiments.registry import Cell, Chart

COLOURS = ("#2563eb", "#b91c1c", "#15803d", "#b45309", "#7e22ce", "#0f766e", "#475569", "#be185d")
MARKERS = "osD^vP*X"
_LOOK: dict[Any, Any] = {
    # Texts stay texts, and ids do not depend on chance.
    "svg.fonttype": "none",
    "svg.hashsalt": "pg_mdistinct",
    "font.size": 10,
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.edgecolor": "#94a3b8",
    "grid.color": "#cbd5e1",
    "grid.linewidth": 0.5,
    "legend.frameon": False,
}

Points = list[tuple[Cell, float]]


@matplotlib.rc_context(_LOOK)
def draw(chart: Chart) -> str:
    """Return the chart as SVG."""
    figure = Figure(figsize=(5.6, 3.2))
    axes = figure.add_subplot()
    lines = _lines(chart)
    if chart.bars:
        _draw_bars(axes, lines)
    else:
        _draw_lines(axes, lines)
    _describe(axes, chart)
    if chart.by is not None:
        axes.legend(fontsize=8.5, bbox_to_anchor=(1.0, 1.0), loc="upper left")
    file = io.StringIO()
    figure.savefig(
        file, format="svg", bbox_inches="tight", facecolor="white", metadata={"Date": None}
    )
    return file.getvalue()


def _lines(chart: Chart) -> dict[str, Points]:
    """Sort the rows of the table into lines, in the order in which they come."""
    lines: dict[str, Points] = {}
    names = chart.table.column(chart.by) if chart.by else [""] * len(chart.table.rows)
    columns = chart.table.column(chart.x), chart.table.column(chart.y)
    for name, x, y in zip(names, *columns, strict=True):
        if isinstance(y, int | float):
            label = f"{chart.by} = {name}" if isinstance(name, int | float) else str(name)
            lines.setdefault(label, []).append((x, float(y)))
    return lines


def _draw_lines(axes: Axes, lines: dict[str, Points]) -> None:
    for number, (name, points) in enumerate(lines.items()):
        axes.plot(
            [float(x) for x, _ in points if isinstance(x, int | float)],
            [y for _, y in points],
            label=name,
            color=COLOURS[number % len(COLOURS)],
            marker=MARKERS[number % len(MARKERS)],
            markersize=4,
            linewidth=1.4,
        )


def _whole_numbers(chart: Chart) -> bool:
    return all(isinstance(x, int) for x in chart.table.column(chart.x))


def _draw_bars(axes: Axes, lines: dict[str, Points]) -> None:
    """Draw bars side by side, a group of them for each x."""
    places = list(dict.fromkeys(str(x) for points in lines.values() for x, _ in points))
    width = 0.8 / max(len(lines), 1)
    for number, (name, points) in enumerate(lines.items()):
        shift = (number - (len(lines) - 1) / 2) * width
        axes.bar(
            [places.index(str(x)) + shift for x, _ in points],
            [y for _, y in points],
            width=width,
            label=name,
            color=COLOURS[number % len(COLOURS)],
        )
    axes.set_xticks(range(len(places)), places)


def _describe(axes: Axes, chart: Chart) -> None:
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    if not chart.bars and _whole_numbers(chart):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if chart.log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    if chart.percent:
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=None))
    elif not chart.log:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
