"""What answers from m-Distinct releases are worth: section 6, "query accuracy"."""

from __future__ import annotations

from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.core.model import M_DISTINCT, M_DISTINCT_STAR
from pg_mdistinct.experiments.publications import DIAMETERS, FEWER_RELEASES, SIZES, published
from pg_mdistinct.experiments.queries import median_error
from pg_mdistinct.experiments.registry import (
    RELEASES,
    Cell,
    Chart,
    Experiment,
    Outcome,
    Progress,
    Setting,
    Table,
)

THETAS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)


def versus_time(setting: Setting, progress: Progress) -> Outcome:
    """Ask every release for counts over half of every domain."""
    rows = []
    for turn, m in enumerate(SIZES):
        progress(f"m = {m}", turn / len(SIZES))
        releases = published(setting, m).releases
        rows += [(m, found.release, found.error) for found in releases if found.error is not None]
    table = Table("query-time", ("m", "release", "median_error"), tuple(rows))
    chart = Chart(
        name="query-time",
        table=table,
        x="release",
        y="median_error",
        x_label="release",
        y_label="median error of counts, θ = 50 %",
        by="m",
        percent=True,
    )
    return Outcome((table,), (chart,))


def versus_theta(setting: Setting, progress: Progress) -> Outcome:
    """Ask the last release for counts over larger and larger parts of every domain."""
    progress("m = 4", 0.0)
    last = published(setting, 4)
    rows = []
    for turn, theta in enumerate(THETAS, start=1):
        rng = setting.rng("queries", RELEASES)
        rows.append((theta, median_error(last.people, last.boxes, rng, theta)))
        progress(f"θ = {theta}", turn / len(THETAS))
    table = Table("query-theta", ("theta", "median_error"), tuple(rows))
    chart = Chart(
        name="query-theta",
        table=table,
        x="theta",
        y="median_error",
        x_label="part θ of every domain that a query covers",
        y_label="median error of counts",
        percent=True,
    )
    return Outcome((table,), (chart,))


def at_diameter(setting: Setting, variant: str, d: int) -> tuple[Cell, ...]:
    """Ask the tenth release under some principle; None, and why, where it cannot be met."""
    last = FEWER_RELEASES
    try:
        found = published(setting, 4, d, variant=variant, releases=last, asked=(last,))
    except MdistinctError as error:
        return (variant, d, None, None, error.message)
    return (variant, d, found.releases[-1].error, found.releases[-1].ncp, None)


def versus_d(setting: Setting, progress: Progress) -> Outcome:
    """Ask the tenth release, for update models of all diameters, under either principle."""
    rows = []
    cases = [(variant, d) for d in DIAMETERS for variant in (M_DISTINCT, M_DISTINCT_STAR)]
    for turn, (variant, d) in enumerate(cases):
        progress(f"{variant}, d = {d}", turn / len(cases))
        rows.append(at_diameter(setting, variant, d))
    columns = ("variant", "d", "median_error", "ncp", "refused")
    table = Table("query-d", columns, tuple(rows))
    chart = Chart(
        name="query-d",
        table=table,
        x="d",
        y="median_error",
        x_label="diameter d of updates",
        y_label="median error in release 10, θ = 50 %",
        by="variant",
        bars=True,
        percent=True,
    )
    return Outcome((table,), (chart,))


EXPERIMENTS = (
    Experiment(
        "query-time",
        "Query error versus time",
        "The median error increases smoothly with time; for m = 2 and m = 4 it stops increasing "
        "after enough releases.",
        versus_time,
    ),
    Experiment(
        "query-theta",
        "Query error versus θ",
        "Queries with larger ranges get more accurate results.",
        versus_theta,
    ),
    Experiment(
        "query-d",
        "Query error versus d",
        "The accuracy increases with d, since more records may go to the same bucket. m-Distinct* "
        "may be impossible.",
        versus_d,
    ),
)
