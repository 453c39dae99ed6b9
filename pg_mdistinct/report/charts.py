"""Draws the charts of a report as SVG that is a part of its page.

Matplotlib draws without a browser, and what it draws needs no script: a page with Vega's charts
would carry a megabyte of JavaScript, show nothing where scripts are off, and print what happens to
be on the screen. Texts stay texts, and every colour is a variable of the page, which knows the dark
and the light one.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from pg_mdistinct.client import Publication, ReleaseInfo
from pg_mdistinct.picture.graph import percent
from pg_mdistinct.picture.words import shortened
from pg_mdistinct.report.figures import ReleaseRisk, Update
from pg_mdistinct.risk_figures import BINS, RiskFigures


@dataclass(frozen=True)
class Colour:
    """A colour of the page by its light and its dark name; charts are drawn with the light one."""

    light: str
    dark: str


PALETTE = {
    "ink": Colour("#1e293b", "#f1f5f9"),
    "soft": Colour("#475569", "#a8b5c7"),
    "line": Colour("#cbd5e1", "#3b4a63"),
    "bar": Colour("#2563eb", "#60a5fa"),
    "alarm": Colour("#b91c1c", "#fca5a5"),
}

WIDTH, HEIGHT = 5.2, 2.5
# A few bars keep their width, and do not fill the chart.
FEWEST_PLACES = 8
MOST_VALUES = 60
MOST_LABELLED_CELLS = 14
LONGEST_LABEL = 18
_SVG = "http://www.w3.org/2000/svg"
_HREF = "{http://www.w3.org/1999/xlink}href"
_LOOK: dict[Any, Any] = {
    "svg.fonttype": "none",
    # The same figures give the same page.
    "svg.hashsalt": "pg_mdistinct",
    "font.size": 10,
    "text.color": PALETTE["ink"].light,
    "text.parse_math": False,
    "axes.labelcolor": PALETTE["ink"].light,
    "axes.edgecolor": PALETTE["line"].light,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": PALETTE["line"].light,
    "grid.linewidth": 0.5,
    "xtick.color": PALETTE["line"].light,
    "ytick.color": PALETTE["line"].light,
    "xtick.labelcolor": PALETTE["ink"].light,
    "ytick.labelcolor": PALETTE["ink"].light,
}


@matplotlib.rc_context(_LOOK)
def counterfeits(releases: Sequence[ReleaseInfo]) -> str:
    """Draws how many counterfeits each release holds."""
    figure, axes = _axes("release", "counterfeits")
    _bars(axes, {info.release: info.counterfeits for info in releases})
    return _svg(figure, "counterfeits", "Counterfeit rows in each release")


@matplotlib.rc_context(_LOOK)
def ncp(publications: Sequence[Publication]) -> str:
    """Draws how much information generalization took, release by release."""
    figure, axes = _axes("release", "information loss (NCP)")
    numbers = [publication.release for publication in publications]
    losses = [publication.ncp for publication in publications]
    axes.plot(numbers, losses, color=_ink("bar"), marker="o", markersize=4)
    axes.set_ylim(0, max(*losses, 0.01) * 1.15)
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    _whole_numbers(axes, min(numbers), max(numbers))
    return _svg(figure, "ncp", "Information loss (NCP) of each release")


@matplotlib.rc_context(_LOOK)
def risk_by_release(risks: Sequence[ReleaseRisk], bound: float | None) -> str:
    """Draws the spread of risk in each release: all, the middle half, and the median."""
    figure, axes = _axes("release", "risk")
    line = {"color": _ink("bar")}
    axes.bxp(
        [_box(risk.figures) for risk in risks],
        positions=[risk.release for risk in risks],
        widths=0.5,
        showfliers=False,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": _ink("bar"), "alpha": 0.35, "linewidth": 0},
        medianprops={"color": _ink("ink"), "linewidth": 2},
        whiskerprops=line,
        capprops=line,
    )
    if bound is not None:
        axes.axhline(bound, color=_ink("alarm"), linestyle="--", linewidth=1)
        axes.annotate(
            "bound",
            (1, bound),
            xycoords=("axes fraction", "data"),
            ha="right",
            va="bottom",
            color=_ink("alarm"),
        )
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    _whole_numbers(axes, risks[0].release, risks[-1].release)
    return _svg(figure, "risk-by-release", "Risk of the versions of each release")


@matplotlib.rc_context(_LOOK)
def risk_histogram(figures: RiskFigures) -> str:
    """Draws how many versions have how much risk."""
    figure, axes = _axes("risk", "versions")
    places = [(i + 0.5) / BINS for i in range(BINS)]
    colours = [_ink("bar")] * (BINS - 1) + [_ink("alarm")]
    axes.bar(places, figures.histogram, width=0.9 / BINS, color=colours)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    _counts(axes)
    return _svg(figure, "risk-histogram", "Versions by risk, all releases together")


@matplotlib.rc_context(_LOOK)
def group_sizes(sizes: Mapping[int, int]) -> str:
    """Draws how many groups have how many rows."""
    figure, axes = _axes("rows in the group", "groups")
    _bars(axes, sizes)
    return _svg(figure, "group-sizes", "Groups of the latest release by their number of rows")


@matplotlib.rc_context(_LOOK)
def update_model(updates: Sequence[Update]) -> str | None:
    """Draws the model as a matrix, darker for likelier updates; None if it is too large to see."""
    values = values_of(updates)
    if len(values) > MOST_VALUES:
        return None
    place = {value: i for i, value in enumerate(values)}
    cell = 0.44 if len(values) <= MOST_LABELLED_CELLS else 0.17
    figure, axes = _axes(
        "value in the next release", "value in a release", cell * len(values), cell * len(values)
    )
    for update in updates:
        corner = (place[update.new_value] - 0.5, place[update.old_value] - 0.5)
        shade = 0.1 + 0.45 * update.probability
        axes.add_patch(Rectangle(corner, 1, 1, color=_ink("bar"), alpha=shade, linewidth=0))
        if len(values) <= MOST_LABELLED_CELLS:
            middle = (place[update.new_value], place[update.old_value])
            axes.text(*middle, percent(update.probability), ha="center", va="center", size=8)
    _label_matrix(axes, values)
    return _svg(figure, "update-model", "The update model: what each value may become")


def values_of(updates: Sequence[Update]) -> list[str]:
    """All values of a model, those that become each other side by side where the model allows."""
    targets: dict[str, set[str]] = {}
    for update in updates:
        targets.setdefault(update.old_value, set()).add(update.new_value)
        targets.setdefault(update.new_value, set())
    ordered: dict[str, None] = {}
    waiting = sorted(targets, reverse=True)
    while waiting:
        value = waiting.pop()
        if value not in ordered:
            ordered[value] = None
            waiting += sorted(targets[value] - ordered.keys(), reverse=True)
    return list(ordered)


def _label_matrix(axes: Axes, values: Sequence[str]) -> None:
    labels = [shortened(value, LONGEST_LABEL) for value in values]
    size = 8 if len(values) <= MOST_LABELLED_CELLS else 6.5
    axes.set_xlim(-0.5, len(values) - 0.5)
    axes.set_ylim(len(values) - 0.5, -0.5)
    axes.set_xticks(range(len(values)), labels, rotation=45, ha="right", size=size)
    axes.set_yticks(range(len(values)), labels, size=size)
    axes.grid(False)


def _bars(axes: Axes, heights: Mapping[int, int]) -> None:
    axes.bar(list(heights), list(heights.values()), width=0.7, color=_ink("bar"))
    _whole_numbers(axes, min(heights), max(heights))
    if not any(heights.values()):
        axes.set_ylim(0, 1)
        axes.text(0.5, 0.5, "none", transform=axes.transAxes, ha="center", va="center")
    _counts(axes)


def _whole_numbers(axes: Axes, lowest: int, highest: int) -> None:
    spare = max(FEWEST_PLACES - (highest - lowest + 1), 1) / 2
    axes.set_xlim(lowest - 0.5 - spare, highest + 0.5 + spare)
    step = -(-(highest - lowest + 1) // 16)
    axes.set_xticks(range(lowest, highest + 1, step))


def _counts(axes: Axes) -> None:
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:,.0f}"))


def _box(figures: RiskFigures) -> dict[str, float]:
    names = {"whislo": "0", "q1": "0.25", "med": "0.5", "q3": "0.75", "whishi": "1"}
    return {name: figures.quantiles[share] for name, share in names.items()}


def _ink(name: str) -> str:
    return PALETTE[name].light


def _axes(
    across: str, up: str, width: float = WIDTH, height: float = HEIGHT
) -> tuple[Figure, Axes]:
    """A figure with nothing but axes; not pyplot's, which would keep it and look for a screen."""
    figure = Figure(figsize=(width, height))
    axes = figure.add_subplot()
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    return figure, axes


def _svg(figure: Figure, name: str, words: str) -> str:
    file = io.StringIO()
    with warnings.catch_warnings():
        # The browser has the letters that Matplotlib's own font is without.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        figure.savefig(file, format="svg", transparent=True, bbox_inches="tight")
    return _inline(file.getvalue(), name, words)


def _inline(document: str, name: str, words: str) -> str:
    """Makes a document a part of the page: own names, the page's colours, nothing else."""
    root = ElementTree.fromstring(document)
    _strip(root)
    names: dict[str, str] = {}
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        if _HREF in element.attrib:
            element.set("href", element.attrib.pop(_HREF))
        if (own := element.attrib.pop("id", None)) is not None and element.tag in _REFERRED_TO:
            names[own] = f"{name}-{len(names)}"
            element.set("id", names[own])
        if (style := element.get("style")) is not None:
            element.set("style", _with_variables(style))
    _rename(root, names)
    for size in ("width", "height", "version"):
        root.attrib.pop(size, None)
    width = root.get("viewBox", "0 0 460 0").split()[2]
    root.attrib.update(
        {"xmlns": _SVG, "role": "img", "aria-label": words, "style": f"max-width: {width}pt"}
    )
    return ElementTree.tostring(root, encoding="unicode")


def _with_variables(style: str) -> str:
    for variable, colour in PALETTE.items():
        style = style.replace(colour.light, f"var(--{variable})")
    return style


_REFERRED_TO = ("path", "clipPath")


def _strip(root: ElementTree.Element) -> None:
    """Drops who made it when, and a style that would be the whole page's."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"):
                parent.remove(child)


def _rename(root: ElementTree.Element, names: Mapping[str, str]) -> None:
    for element in root.iter():
        if (target := element.get("href")) is not None:
            element.set("href", f"#{names[target.removeprefix('#')]}")
        if (clip := element.get("clip-path")) is not None:
            own = clip.removeprefix("url(#").removesuffix(")")
            element.set("clip-path", f"url(#{names[own]})")
