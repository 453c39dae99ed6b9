"""Update graphs as pictures, drawn from rows as `mdistinct_sug` returns them."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.text import Text

from pg_mdistinct.picture import UpdateGraphPicture, as_svg, as_text, as_words
from pg_mdistinct.picture.graph import percent
from pg_mdistinct.picture.words import columns_of, shortened

SVG = "{http://www.w3.org/2000/svg}"
Row = dict[str, Any]


def node(release: int, value: str, posterior: float, is_true: bool | None = None) -> Row:
    return {
        "kind": "node",
        "release": release,
        "value": value,
        "next_release": None,
        "next_value": None,
        "weight": 0.5,
        "posterior": posterior,
        "feasible": posterior > 0,
        "is_true": is_true,
    }


def edge(
    release: int, value: str, next_value: str, posterior: float, is_true: bool | None = None
) -> Row:
    return node(release, value, posterior, is_true) | {
        "kind": "edge",
        "next_release": release + 1,
        "next_value": next_value,
    }


JULIA = [
    node(1, "Dyspepsia", 0.0),
    node(1, "Pneumonia", 1.0),
    node(2, "Lung Cancer", 0.5),
    node(2, "Pneumonia", 0.5),
    edge(1, "Pneumonia", "Pneumonia", 0.5),
    edge(1, "Pneumonia", "Lung Cancer", 0.5),
]
BEN = [
    node(1, "Flu", 0.5, True),
    node(1, "Gastritis", 0.5, False),
    node(1, "Glaucoma", 0.0, False),
    node(2, "Pneumonia", 0.5, True),
    node(2, "Gastritis", 0.5, False),
    node(2, "Cataract", 0.0, False),
    edge(1, "Flu", "Pneumonia", 0.5, True),
    edge(1, "Gastritis", "Gastritis", 0.5, False),
    edge(1, "Glaucoma", "Cataract", 0.0, False),
]


def picture(rows: list[Row], record: str = "Julia") -> UpdateGraphPicture:
    return UpdateGraphPicture.of("hospital", record, rows)


def grid(versions: int, candidates: int) -> UpdateGraphPicture:
    """Every candidate may become every other."""
    values = [f"value {i}" for i in range(candidates)]
    nodes = [node(r, v, 1 / candidates) for r in range(1, versions + 1) for v in values]
    share = 1 / candidates**2
    edges = [edge(r, a, b, share) for r in range(1, versions) for a in values for b in values]
    return picture(nodes + edges)


def drawn(graph: UpdateGraphPicture) -> ElementTree.Element:
    return ElementTree.fromstring(as_svg(graph))


def paths(root: ElementTree.Element, kind: str) -> int:
    """Count the edges of a kind; those of the legend carry no title."""
    found = root.findall(f".//{SVG}path[@class='{kind}']")
    return sum(path.find(f"{SVG}title") is not None for path in found)


def boxes(root: ElementTree.Element, kind: str) -> list[str]:
    found = root.findall(f"{SVG}g[@class='{kind}']")
    return [text for group in found if (text := group.findtext(f"{SVG}text"))]


def test_svg_shows_nodes_and_edges() -> None:
    root = drawn(picture(JULIA))
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == "What the releases tell about Julia"
    assert root.findtext(f"{SVG}desc") == (
        "Release 1: Pneumonia 100%; excluded: Dyspepsia. Release 2: Lung Cancer 50%, Pneumonia 50%."
    )
    assert boxes(root, "known") == ["Pneumonia"]
    assert boxes(root, "out") == ["Dyspepsia"]
    assert boxes(root, "open") == ["Lung Cancer", "Pneumonia"]
    assert (paths(root, "edge"), paths(root, "cut"), paths(root, "truth-edge")) == (2, 0, 0)


def test_svg_strikes_out_what_can_be_excluded() -> None:
    root = drawn(picture(BEN))
    assert boxes(root, "out") == ["Glaucoma", "Cataract"]
    assert (paths(root, "edge"), paths(root, "cut"), paths(root, "truth-edge")) == (1, 1, 1)
    crosses = root.findall(f".//{SVG}path[@class='cross']")
    assert len(crosses) == 4, "one for each node and edge, and one in the legend"


def test_the_truth_is_shown_only_where_it_was_told() -> None:
    told, untold = as_svg(picture(BEN)), as_svg(picture(JULIA))
    body = re.compile(r"<style>.*</style>", re.DOTALL)
    assert "the truth" in told
    assert "truth" not in body.sub("", untold)
    assert "★" in as_text(picture(BEN), 100).plain
    assert "★" not in as_text(picture(JULIA), 100).plain
    assert "(true)" not in as_words(picture(JULIA))


@pytest.mark.parametrize("versions", [1, 2, 5, 8])
@pytest.mark.parametrize("candidates", [1, 3, 8])
def test_svg_draws_within_its_bounds_and_without_overlap(versions: int, candidates: int) -> None:
    root = drawn(grid(versions, candidates))
    width, height = (float(root.get(name, "0")) for name in ("width", "height"))
    found = [
        tuple(float(box.get(name, "0")) for name in ("x", "y", "width", "height"))
        for box in root.findall(f"{SVG}g/{SVG}rect[@class='box']")
        if float(box.get("height", "0")) > 20
    ]
    assert len(found) == versions * candidates
    for x, y, w, h in found:
        assert 0 < x < x + w < width
        assert 0 < y < y + h < height
    for i, (x, y, w, h) in enumerate(found):
        for x2, y2, w2, h2 in found[i + 1 :]:
            assert x + w < x2 or x2 + w2 < x or y + h < y2 or y2 + h2 < y
    for text in root.findall(f".//{SVG}text"):
        assert 0 < float(text.get("x", "0")) < width
        assert 0 < float(text.get("y", "0")) < height


def test_texts_of_users_are_no_markup() -> None:
    record = '<script>&"\x01[bold]'
    value = "]]> <b>&amp; a value that is far too long to be shown in one box of a picture"
    graph = picture([node(1, value, 1.0)], record)
    root = drawn(graph)
    assert root.findtext(f"{SVG}title") == 'What the releases tell about <script>&"\ufffd[bold]'
    assert not root.findall(f".//{SVG}script")
    (shown,) = boxes(root, "known")
    assert shown == "]]> <b>&amp; a value…"
    full = root.find(f"{SVG}g/{SVG}title")
    assert full is not None
    assert value in str(full.text)
    assert "[bold]" in as_text(graph, 100).plain


def test_few_edges_cross() -> None:
    """Classes of values end up side by side, whatever their names."""
    values = {"a": 0, "b": 1, "c": 0, "d": 1}
    nodes = [node(r, v, 0.25) for r in (1, 2) for v in values]
    edges = [edge(1, a, b, 0.125) for a in values for b in values if values[a] == values[b]]
    columns = picture(nodes + edges).columns
    for column in columns.values():
        classes = [values[n.value] for n in column]
        assert classes in ([0, 0, 1, 1], [1, 1, 0, 0])


def test_terminal() -> None:
    text = as_text(picture(BEN, "Ben"), 80)
    lines = text.plain.splitlines()
    assert lines[0] == "What the releases tell about Ben"
    assert lines[2].split() == ["release", "1", "release", "2"]
    assert lines[3].split() == ["2", "of", "3", "left"] * 2
    assert any(line.startswith("✗ Glaucoma") and "×" in line for line in lines)
    assert any(line.startswith("★ Flu") and "★ Pneumonia" in line for line in lines)
    assert _has_dots(text)
    assert "✗ can be excluded" in lines[-1]


def _has_dots(text: Text) -> bool:
    return any(0x2800 < ord(sign) < 0x2900 for sign in text.plain)


@pytest.mark.parametrize("width", [40, 60, 80, 120, 300])
def test_terminal_breaks_long_histories_into_strips(width: int) -> None:
    text = as_text(grid(8, 3), width)
    assert max(columns_of(line) for line in text.plain.splitlines()) <= width
    headings = re.findall(r"release (\d)", text.plain)
    assert sorted(set(headings)) == list("12345678")
    strips = [line for line in text.plain.splitlines() if line.startswith("release")]
    # Each strip begins with the version that the one before ends with.
    assert len(headings) == 8 + len(strips) - 1


def test_words() -> None:
    assert as_words(picture(BEN, "Ben")).splitlines()[:4] == [
        "What the releases tell about Ben",
        "release 1",
        "  Flu: 50% (true)",
        "    -> Pneumonia (release 2): 50%",
    ]
    assert "-> Cataract (release 2): excluded" in as_words(picture(BEN))


def test_an_empty_graph_can_be_drawn() -> None:
    assert drawn(picture([])).findtext(f"{SVG}desc") == ""
    assert as_text(picture([]), 80).plain


@pytest.mark.parametrize(
    ("probability", "shown"),
    [(0, "0%"), (1e-9, "<1%"), (0.25, "25%"), (1 / 3, "33%"), (1 - 1e-9, ">99%"), (1, "100%")],
)
def test_percent(probability: float, shown: str) -> None:
    assert percent(probability) == shown


def test_shortened() -> None:
    assert shortened("Flu", 5) == "Flu"
    assert shortened("Pneumonia", 5) == "Pneu…"
    assert shortened("日本語", 5) == "日本…"
    assert columns_of("日本語") == 6
    assert shortened("a\nb\x1b[31m", 20) == "a\ufffdb\ufffd[31m"
