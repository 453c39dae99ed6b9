"""Draws an update graph as SVG: plain shapes, readable on light and dark screens and on paper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from xml.sax.saxutils import escape

from pg_mdistinct.picture.graph import Edge, Node, UpdateGraphPicture, percent
from pg_mdistinct.picture.words import columns_of, shortened

MARGIN = 28.0
HEADER = 126.0
NODE_HEIGHT = 40.0
NODE_GAP = 14.0
CHANNEL = 110.0
SIGN_WIDTH = 8.2
LONGEST_VALUE = 22
LONGEST_TITLE = 60
LEGEND_LINE = 24.0
NARROWEST = 560.0

# Classes are spelt out for both colour schemes: not every viewer knows CSS variables.
_STYLE = """\
text { font-family: system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; font-size: 13px; }
.paper { fill: #ffffff; }
.ink { fill: #1e293b; }
.title { font-size: 19px; font-weight: 600; }
.soft { fill: #64748b; }
.small { font-size: 12px; }
.figure { font-weight: 600; text-anchor: end; }
.head { font-weight: 600; text-anchor: middle; }
.middle { text-anchor: middle; }
.box { fill: #f8fafc; stroke: #94a3b8; stroke-width: 1.2; }
.track { fill: #e2e8f0; }
.bar { fill: #2563eb; }
.edge { fill: none; stroke: #2563eb; stroke-opacity: .5; stroke-linecap: round; }
.out .box { fill: none; stroke: #94a3b8; stroke-dasharray: 4 3; }
.out text { fill: #64748b; text-decoration: line-through; }
.cut { fill: none; stroke: #94a3b8; stroke-width: 1.2; stroke-dasharray: 4 4; }
.cross { fill: none; stroke: #64748b; stroke-width: 1.6; stroke-linecap: round; }
.known .box { stroke: #dc2626; stroke-width: 1.8; }
.known .bar { fill: #dc2626; }
.known .figure { fill: #b91c1c; }
.truth { fill: none; stroke: #b45309; stroke-width: 2.4; }
.truth-edge { fill: none; stroke: #d97706; stroke-linecap: round; }
.truth-sign { fill: #b45309; }
@media (prefers-color-scheme: dark) {
.paper { fill: #0f172a; }
.ink { fill: #f1f5f9; }
.soft { fill: #94a3b8; }
.box { fill: #1e293b; stroke: #64748b; }
.track { fill: #334155; }
.bar { fill: #60a5fa; }
.edge { stroke: #60a5fa; }
.out .box { fill: none; stroke: #64748b; }
.out text { fill: #94a3b8; }
.cut { stroke: #64748b; }
.cross { stroke: #94a3b8; }
.known .box { stroke: #f87171; }
.known .bar { fill: #f87171; }
.known .figure { fill: #fca5a5; }
.truth { stroke: #fbbf24; }
.truth-edge { stroke: #fbbf24; }
.truth-sign { fill: #fbbf24; }
}"""


def as_svg(picture: UpdateGraphPicture) -> str:
    """Return the picture as an SVG document."""
    return "\n".join(_Drawing(picture).document()) + "\n"


@dataclass(frozen=True)
class _Place:
    """Where a node stands: its left end and its middle line."""

    x: float
    y: float


class _Drawing:
    """The layout of one picture, and its parts as lines of XML."""

    def __init__(self, picture: UpdateGraphPicture) -> None:
        self.picture = picture
        columns = picture.columns
        self.node_width = {release: _node_width(nodes) for release, nodes in columns.items()}
        tallest = max(map(len, columns.values()), default=0)
        self.body = tallest * (NODE_HEIGHT + NODE_GAP) - NODE_GAP if tallest else 0.0
        drawn = sum(width + CHANNEL for width in self.node_width.values()) - CHANNEL
        self.width = max(drawn + 2 * MARGIN, NARROWEST)
        self.left: dict[int, float] = {}
        x = (self.width - drawn) / 2
        for release, width in self.node_width.items():
            self.left[release] = x
            x += width + CHANNEL
        self.places = {
            (release, node.value): _Place(self.left[release], self._middle(len(nodes), i))
            for release, nodes in columns.items()
            for i, node in enumerate(nodes)
        }
        self.legend = list(_legend_lines(_legend(picture), self.width - 2 * MARGIN))
        self.height = HEADER + self.body + 34 + LEGEND_LINE * len(self.legend) + 14

    def _middle(self, count: int, i: int) -> float:
        """Centre short columns on the tall ones."""
        used = count * (NODE_HEIGHT + NODE_GAP) - NODE_GAP
        top = HEADER + (self.body - used) / 2
        return top + i * (NODE_HEIGHT + NODE_GAP) + NODE_HEIGHT / 2

    def document(self) -> Iterator[str]:
        size = f"{_n(self.width)} {_n(self.height)}"
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" '
            f'width="{_n(self.width)}" height="{_n(self.height)}" '
            'role="img" aria-labelledby="title desc">'
        )
        yield f'<title id="title">{_text(self._title())}</title>'
        yield f'<desc id="desc">{_text(_description(self.picture))}</desc>'
        yield f"<style>\n{_STYLE}\n</style>"
        yield f'<rect class="paper" width="{_n(self.width)}" height="{_n(self.height)}" rx="10"/>'
        yield from self._headings()
        # Likely updates over unlikely ones, and the truth over all.
        edges = sorted(self.picture.edges, key=lambda e: (bool(e.is_true), e.feasible, e.posterior))
        for edge in edges:
            yield from self._edge(edge)
        for nodes in self.picture.columns.values():
            for node in nodes:
                yield from self._node(node)
        yield from self._legend_parts()
        yield "</svg>"

    def _title(self) -> str:
        return f"What the releases tell about {self.picture.record}"

    def _headings(self) -> Iterator[str]:
        title = shortened(self._title(), min(LONGEST_TITLE, int(self.width / 11)))
        yield f'<text class="ink title" x="{_n(MARGIN)}" y="40">{_text(title)}</text>'
        below = f"Update graph in the dataset {shortened(self.picture.dataset, 50)}"
        yield f'<text class="soft" x="{_n(MARGIN)}" y="60">{_text(below)}</text>'
        releases = list(self.picture.columns)
        for release in releases:
            middle = self.left[release] + self.node_width[release] / 2
            yield _heading("ink head", middle, HEADER - 30, f"Release {release}")
            yield _heading("soft small middle", middle, HEADER - 14, _left(self.picture, release))
        for before, after in pairwise(releases):
            if after - before > 1:
                middle = self.left[after] - CHANNEL / 2
                yield _heading("soft small middle", middle, HEADER - 30, f"{after - before} steps")

    def _edge(self, edge: Edge) -> Iterator[str]:
        before = self.places[edge.release, edge.value]
        after = self.places[edge.next_release, edge.next_value]
        start, end = before.x + self.node_width[edge.release], after.x
        bend = (end - start) * 0.45
        curve = (
            f"M{_n(start)} {_n(before.y)}C{_n(start + bend)} {_n(before.y)} "
            f"{_n(end - bend)} {_n(after.y)} {_n(end)} {_n(after.y)}"
        )
        words = _text(_edge_words(edge))
        width = 1.2 + 7 * edge.posterior
        if not edge.feasible:
            yield f'<path class="cut" d="{curve}"><title>{words}</title></path>'
            yield _cross((start + end) / 2, (before.y + after.y) / 2, 4)
        elif edge.is_true:
            yield (
                f'<path class="truth-edge" stroke-width="{_n(max(width, 2.4))}" d="{curve}">'
                f"<title>{words}</title></path>"
            )
        else:
            yield (
                f'<path class="edge" stroke-width="{_n(width)}" d="{curve}">'
                f"<title>{words}</title></path>"
            )

    def _node(self, node: Node) -> Iterator[str]:
        place = self.places[node.release, node.value]
        x, top, width = place.x, place.y - NODE_HEIGHT / 2, self.node_width[node.release]
        kind = "out" if not node.feasible else "known" if self.picture.is_known(node) else "open"
        yield f'<g class="{kind}"><title>{_text(_node_words(self.picture, node))}</title>'
        yield _box("box", x, top, width, NODE_HEIGHT, 8)
        value = shortened(node.value, LONGEST_VALUE)
        line = _n(top + (24 if kind == "out" else 20))
        yield f'<text class="ink" x="{_n(x + 12)}" y="{line}">{_text(value)}</text>'
        if node.feasible:
            yield (
                f'<text class="ink figure" x="{_n(x + width - 12)}" y="{line}">'
                f"{_text(percent(node.posterior))}</text>"
            )
            yield _box("track", x + 12, top + 28, width - 24, 4, 2)
            yield _box("bar", x + 12, top + 28, max((width - 24) * node.posterior, 4), 4, 2)
        else:
            yield _cross(x + width - 18, place.y, 5)
        yield "</g>"
        if node.is_true:
            yield _box("truth", x - 3.5, top - 3.5, width + 7, NODE_HEIGHT + 7, 11)
            yield _star(x + width + 1, top - 1)

    def _legend_parts(self) -> Iterator[str]:
        for i, line in enumerate(self.legend):
            y = HEADER + self.body + 40 + i * LEGEND_LINE
            for x, sign, words in line:
                yield from _legend_sign(sign, x, y)
                yield f'<text class="soft small" x="{_n(x + 42)}" y="{_n(y + 4)}">{words}</text>'


def _node_width(nodes: list[Node]) -> float:
    widest = max(columns_of(shortened(node.value, LONGEST_VALUE)) for node in nodes)
    return max(130.0, widest * SIGN_WIDTH + 76)


def _heading(kind: str, x: float, y: float, words: str) -> str:
    return f'<text class="{kind}" x="{_n(x)}" y="{_n(y)}">{words}</text>'


def _left(picture: UpdateGraphPicture, release: int) -> str:
    count, left = len(picture.columns[release]), picture.left(release)
    if left < count:
        return f"{left} of {count} left"
    return "1 candidate" if count == 1 else f"{count} candidates"


def _legend(picture: UpdateGraphPicture) -> Iterator[tuple[str, str]]:
    yield "bar", "candidate, and how likely it is to be the true one"
    if any(edge.feasible for edge in picture.edges):
        yield "edge", "possible update; thicker: likelier"
    if not all(node.feasible for node in picture.nodes):
        yield "cut", "can be excluded"
    if any(picture.is_known(node) for node in picture.nodes):
        yield "known", "known for certain"
    if picture.shows_true_path:
        yield "truth", "the truth"


def _legend_lines(
    items: Iterator[tuple[str, str]], width: float
) -> Iterator[list[tuple[float, str, str]]]:
    """Put legend entries side by side, and into as many lines as they need."""
    line: list[tuple[float, str, str]] = []
    x = MARGIN
    for sign, words in items:
        room = 42 + len(words) * 6.3 + 28
        if line and x + room > MARGIN + width:
            yield line
            line, x = [], MARGIN
        line.append((x, sign, words))
        x += room
    if line:
        yield line


def _legend_sign(sign: str, x: float, y: float) -> Iterator[str]:
    if sign == "bar":
        yield _box("track", x, y - 2, 34, 4, 2)
        yield _box("bar", x, y - 2, 20, 4, 2)
    elif sign == "edge":
        yield f'<path class="edge" stroke-width="4" d="M{_n(x + 2)} {_n(y)}h30"/>'
    elif sign == "cut":
        yield f'<path class="cut" d="M{_n(x)} {_n(y)}h34"/>'
        yield _cross(x + 17, y, 4)
    elif sign == "known":
        yield f'<g class="known">{_box("box", x + 1, y - 8, 32, 16, 5)}</g>'
    else:
        yield f'<path class="truth-edge" stroke-width="3" d="M{_n(x + 2)} {_n(y)}h30"/>'
        yield _star(x + 17, y)


def _box(kind: str, x: float, y: float, width: float, height: float, radius: float) -> str:
    return (
        f'<rect class="{kind}" x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" '
        f'height="{_n(height)}" rx="{_n(radius)}"/>'
    )


def _cross(x: float, y: float, arm: float) -> str:
    a = _n(2 * arm)
    return f'<path class="cross" d="M{_n(x - arm)} {_n(y - arm)}l{a} {a}m0 -{a}l-{a} {a}"/>'


def _star(x: float, y: float) -> str:
    """Draw a sign that tells the truth without colour, on a plate of paper."""
    return (
        f'<circle class="paper" cx="{_n(x)}" cy="{_n(y)}" r="8.5"/>'
        f'<path class="truth-sign" d="M{_n(x)} {_n(y - 7)}l2 4.8 5.2 .4 -4 3.4 1.3 5 '
        '-4.5 -2.7 -4.5 2.7 1.3 -5 -4 -3.4 5.2 -.4z"/>'
    )


def _node_words(picture: UpdateGraphPicture, node: Node) -> str:
    chance = percent(node.posterior) if node.feasible else "can be excluded"
    extra = " (known for certain)" if picture.is_known(node) else ""
    truth = ", the true value" if node.is_true else ""
    share = percent(node.weight)
    return f"Release {node.release}: {node.value}: {chance}{extra}; {share} of its group{truth}"


def _edge_words(edge: Edge) -> str:
    words = (
        f"{edge.value} (release {edge.release}) to {edge.next_value} "
        f"(release {edge.next_release}): probability {percent(edge.weight)}"
    )
    if not edge.feasible:
        return f"{words}; can be excluded"
    return f"{words}; happened with {percent(edge.posterior)}"


def _description(picture: UpdateGraphPicture) -> str:
    """Say in words what the picture shows, for those who cannot see it."""
    lines = []
    for release, nodes in picture.columns.items():
        open_ones = [f"{n.value} {percent(n.posterior)}" for n in nodes if n.feasible]
        excluded = [n.value for n in nodes if not n.feasible]
        line = f"Release {release}: {', '.join(open_ones) or 'no candidate is left'}"
        lines.append(line + (f"; excluded: {', '.join(excluded)}" if excluded else "") + ".")
    return " ".join(lines)


def _text(words: str) -> str:
    """Make a text of users safe for XML, which forbids some signs altogether."""
    legal = "".join(sign if _legal(sign) else "\N{REPLACEMENT CHARACTER}" for sign in words)
    return escape(legal)


def _legal(sign: str) -> bool:
    code = ord(sign)
    return sign in "\t\n\r" or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code > 0xFFFF


def _n(number: float) -> str:
    """Write a coordinate with no more digits than an eye can tell apart."""
    return f"{number:.1f}".rstrip("0").rstrip(".")
