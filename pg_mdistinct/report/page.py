"""Puts figures and charts into one file of HTML that needs nothing else."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pg_mdistinct import __version__
from pg_mdistinct.picture import UpdateGraphPicture, as_svg, as_words
from pg_mdistinct.picture.graph import percent
from pg_mdistinct.report import charts
from pg_mdistinct.report.figures import Figures, Inside

# Long lists are for SQL; a page shows how they begin.
LISTED = 200


@dataclass(frozen=True)
class InsideCharts:
    """The charts of what only admins may know."""

    ncp: Markup
    risk_by_release: Markup
    risk_histogram: Markup
    update_model: Markup | None

    @classmethod
    def of(cls, inside: Inside) -> InsideCharts:
        """Draws them."""
        model = charts.update_model(inside.updates) if inside.updates else None
        return cls(
            ncp=Markup(charts.ncp(inside.publications)),
            risk_by_release=Markup(charts.risk_by_release(inside.risks, inside.info.max_risk)),
            risk_histogram=Markup(charts.risk_histogram(inside.total.figures)),
            update_model=None if model is None else Markup(model),
        )


def as_html(figures: Figures) -> str:
    """The whole page; values of users are shown as they are, never as markup."""
    environment = Environment(
        loader=PackageLoader("pg_mdistinct.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_legible,
    )
    environment.filters.update(number=_number, percent=_percent, chance=percent)
    inside = figures.inside
    return environment.get_template("template.html").render(
        version=__version__,
        palette=charts.PALETTE,
        figures=figures,
        inside=inside,
        counterfeits=Markup(charts.counterfeits(figures.releases)),
        group_sizes=Markup(charts.group_sizes(figures.group_sizes)),
        charts=None if inside is None else InsideCharts.of(inside),
        values=0 if inside is None else len(charts.values_of(inside.updates)),
        record=None if inside is None or inside.record is None else _Record.of(inside.record),
        listed=LISTED,
    )


@dataclass(frozen=True)
class _Record:
    """An update graph as an image, whose style is its own, and in words."""

    name: str
    image: str
    words: str

    @classmethod
    def of(cls, picture: UpdateGraphPicture) -> _Record:
        coded = base64.b64encode(as_svg(picture).encode()).decode()
        return cls(picture.record, f"data:image/svg+xml;base64,{coded}", as_words(picture))


def _legible(value: object) -> object:
    """Shows signs that neither XML nor people can read as what they are: unreadable."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return "".join(
            c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in value
        )
    return value


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def _percent(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.1%}"
