"""The tables of docs/experiments/panels.md are those of the files beside it.

PG_MDISTINCT_RENEW=1 pytest tests/docs/test_panels.py puts the files' figures into the page.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from functools import cache

from tests.docs.renewal import check_current
from tests.documents import FOLDER

PAGE = FOLDER / "experiments" / "panels.md"
# A table without a column for it is about one panel, and follows one of these headings or lines.
PANELS = {
    "## The paper's updates on real people": "panel-time-use",
    "- There is a remedy, and it is the user's": "panel-cognition-ends",
    "work status": "panel-work",
    "health": "panel-health",
    "marital status": "panel-marital",
    "cognition": "panel-cognition",
    "transplants": "panel-transplants",
}


def percent(number: str) -> str:
    return f"{100 * float(number):.1f} %"


def rounded(digits: int) -> Callable[[str], str]:
    return lambda number: f"{float(number):.{digits}f}"


COLUMNS: dict[str, tuple[str, Callable[[str], str]]] = {
    "left out": ("left_out", percent),
    "candidates": ("candidates", rounded(1)),
    "counterfeits a group": ("counterfeits_a_group", rounded(2)),
    "query error": ("median_error", percent),
    "disclosed": ("disclosed", percent),
    "disclosed by ends": ("disclosed_by_ends", percent),
    "mean risk, equal": ("equal_mean_risk", percent),
    "mean risk, learned": ("learned_mean_risk", percent),
    "almost sure": ("almost_sure", percent),
}


@cache
def figures(panel: str) -> dict[tuple[str, str], dict[str, str]]:
    with (FOLDER / "experiments" / f"{panel}.csv").open(encoding="utf-8") as file:
        return {(row["method"], row["m"]): row for row in csv.DictReader(file)}


def method_in_file(shown: str) -> str:
    return shown.replace("\\", "") if shown.startswith("ℓ") else shown.replace("\\", "").lower()


def renewed(header: list[str], cells: list[str], about: str) -> list[str]:
    """Return a row of a table with what the files say."""
    told = dict(zip(header, cells, strict=False))
    row = figures(PANELS[told.get("panel", about)])[method_in_file(told["method"]), told["m"]]
    if row["refused"]:
        shown = {"left out": "impossible"}
        return [cell if name not in COLUMNS else shown.get(name, "") for name, cell in told.items()]
    return [
        COLUMNS[name][1](row[COLUMNS[name][0]]) if name in COLUMNS else told[name]
        for name in header
    ]


def lines() -> Iterator[str]:
    header: list[str] = []
    about = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        about = next((panel for panel in PANELS if line.startswith(panel)), about)
        if not line.strip().startswith("|"):
            header = []
            yield line
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not header:
            header = cells
        elif "method" in header and not cells[0].startswith("---"):
            indent = line[: len(line) - len(line.lstrip())]
            shown = (f" {cell} " if cell else " " for cell in renewed(header, cells, about))
            yield f"{indent}|{'|'.join(shown)}|"
            continue
        yield line


def test_tables_are_current() -> None:
    check_current(PAGE, "\n".join(lines()) + "\n")
