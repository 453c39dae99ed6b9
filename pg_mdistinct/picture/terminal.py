"""Draws an update graph in a terminal; edges are lines of Braille dots, eight to a sign."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.text import Text

from pg_mdistinct.picture.graph import Edge, Node, UpdateGraphPicture, percent
from pg_mdistinct.picture.words import columns_of, shortened

CHANNEL = 12
NARROWEST_CHANNEL = 6
LINES_A_NODE = 2
LONGEST_VALUE = 24
SHORTEST_VALUE = 4
_FIGURE = 5
_SIGN = 2

_OPEN, _OUT, _KNOWN, _TRUE = "", "dim strike", "bold red", "bold yellow"
_EDGE, _CUT, _TRUE_EDGE = "blue", "dim", "yellow"

# The bits of Unicode's Braille signs: two columns of four dots.
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_BRAILLE = 0x2800


@dataclass
class _Canvas:
    """A field of dots between two versions, two to a sign across and four down."""

    width: int
    height: int
    dots: dict[tuple[int, int], int] = field(default_factory=dict)
    style: dict[tuple[int, int], str] = field(default_factory=dict)
    signs: dict[tuple[int, int], str] = field(default_factory=dict)

    def line(self, start: float, end: float, style: str, *, broken: bool) -> None:
        """Draw a curve from the left side to the right one, from height to height in dots."""
        across = 2 * self.width
        steps = 8 * across
        for step in range(steps + 1):
            t = step / steps
            x = min(int(t * across), across - 1)
            y = round(start + (end - start) * t * t * (3 - 2 * t))
            if not broken or x % 4 < 2:
                self._dot(x, y, style)

    def cross(self, height: float) -> None:
        """Strike a line out in its middle."""
        self.signs[self.width // 2, round(height) // 4] = "×"

    def _dot(self, x: int, y: int, style: str) -> None:
        cell = (x // 2, y // 4)
        self.dots[cell] = self.dots.get(cell, 0) | _DOTS[x % 2][y % 4]
        self.style[cell] = style

    def row(self, y: int) -> Text:
        """Return one line of signs."""
        text = Text()
        for x in range(self.width):
            if (x, y) in self.signs:
                text.append(self.signs[x, y], _CUT)
            else:
                dots = self.dots.get((x, y), 0)
                text.append(chr(_BRAILLE + dots) if dots else " ", self.style.get((x, y), ""))
        return text


def as_text(picture: UpdateGraphPicture, width: int) -> Text:
    """Return the picture, cut into strips where it is wider than the terminal.

    A strip begins with the version that the one before ends with.
    """
    lines = [Text(f"What the releases tell about {_printable(picture.record)}", style="bold")]
    for strip in _strips(picture, width):
        lines += [Text(), *strip.lines()]
    lines += [Text(), _legend(picture)]
    return Text("\n").join(lines)


def as_words(picture: UpdateGraphPicture) -> str:
    """Say the same in plain words, for terminals and files without such signs."""
    lines = [f"What the releases tell about {picture.record}"]
    for release, nodes in picture.columns.items():
        lines.append(f"release {release}")
        for node in nodes:
            chance = percent(node.posterior) if node.feasible else "excluded"
            truth = " (true)" if node.is_true else ""
            lines.append(f"  {node.value}: {chance}{truth}")
            lines += [
                f"    -> {edge.next_value} (release {edge.next_release}): "
                + (percent(edge.posterior) if edge.feasible else "excluded")
                for edge in picture.edges
                if (edge.release, edge.value) == (release, node.value)
            ]
    return "\n".join(lines)


class _Strip:
    """Some versions side by side, and the updates between them."""

    def __init__(
        self, picture: UpdateGraphPicture, releases: Sequence[int], longest: int, channel: int
    ) -> None:
        self.picture = picture
        self.releases = releases
        self.longest = longest
        self.channel = channel
        self.columns = {release: picture.columns[release] for release in releases}
        tallest = max(map(len, self.columns.values()), default=1)
        self.height = LINES_A_NODE * tallest - 1

    def lines(self) -> Iterator[Text]:
        headings = [self._heading(release) for release in self.releases]
        yield Text(" " * self.channel).join(heading for heading, _ in headings)
        yield Text(" " * self.channel).join(below for _, below in headings)
        canvases = [self._canvas(release) for release in self.releases[:-1]]
        shown = {
            (release, self._line(release, i)): node
            for release, nodes in self.columns.items()
            for i, node in enumerate(nodes)
        }
        for y in range(self.height):
            line = Text()
            for i, release in enumerate(self.releases):
                line.append_text(self._cell(release, shown.get((release, y))))
                if i < len(canvases):
                    line.append(" ").append_text(canvases[i].row(y)).append(" ")
            yield line

    def _line(self, release: int, i: int) -> int:
        """Return the line of a node; short columns stand in the middle."""
        used = LINES_A_NODE * len(self.columns[release]) - 1
        return (self.height - used) // 2 + LINES_A_NODE * i

    def _heading(self, release: int) -> tuple[Text, Text]:
        width = _width(self.columns[release], self.longest)
        count, left = len(self.columns[release]), self.picture.left(release)
        words = f"{left} of {count} left" if left < count else f"{count} possible"
        return (
            Text(shortened(f"release {release}", width).ljust(width), style="bold"),
            Text(shortened(words, width).ljust(width), style="dim"),
        )

    def _cell(self, release: int, node: Node | None) -> Text:
        width = _width(self.columns[release], self.longest)
        if node is None:
            return Text(" " * width)
        sign, style = _look(self.picture, node)
        value = shortened(node.value, self.longest)
        figure = percent(node.posterior) if node.feasible else ""
        padding = " " * (width - _SIGN - columns_of(value) - len(figure))
        text = Text(f"{sign} ", style=style.replace(" strike", ""))
        return text.append(value, style).append(padding).append(figure, style)

    def _canvas(self, release: int) -> _Canvas:
        canvas = _Canvas(self.channel - 2, self.height)
        line = {
            (r, node.value): 4 * self._line(r, i) + 1.5
            for r, nodes in self.columns.items()
            for i, node in enumerate(nodes)
        }
        edges = [edge for edge in self.picture.edges if edge.release == release]
        for edge in sorted(edges, key=lambda e: (e.feasible, bool(e.is_true))):
            start, end = line[release, edge.value], line[edge.next_release, edge.next_value]
            canvas.line(start, end, _edge_style(edge), broken=not edge.feasible)
            if not edge.feasible:
                canvas.cross((start + end) / 2)
        return canvas


def _strips(picture: UpdateGraphPicture, width: int) -> Iterator[_Strip]:
    releases = list(picture.columns)
    channel, longest = _fit(picture, width)
    at = 0
    while at < len(releases):
        end, used = at, -channel
        while end < len(releases):
            used += channel + _width(picture.columns[releases[end]], longest)
            if used > width and end > at + 1:
                break
            end += 1
        yield _Strip(picture, releases[at:end], longest, channel)
        if end == len(releases):
            return
        at = end - 1


def _fit(picture: UpdateGraphPicture, width: int) -> tuple[int, int]:
    """Return channel and longest value so that any two versions fit side by side."""
    widths = [_width(nodes, LONGEST_VALUE) for nodes in picture.columns.values()]
    if 2 * max(widths, default=0) + CHANNEL <= width:
        return CHANNEL, LONGEST_VALUE
    room = (width - NARROWEST_CHANNEL) // 2 - _SIGN - _FIGURE
    return NARROWEST_CHANNEL, min(max(room, SHORTEST_VALUE), LONGEST_VALUE)


def _width(nodes: Sequence[Node], longest: int) -> int:
    values = [columns_of(shortened(node.value, longest)) for node in nodes]
    return max(_SIGN + max(values) + _FIGURE, 11)


def _look(picture: UpdateGraphPicture, node: Node) -> tuple[str, str]:
    """Choose sign and style: signs too, since not every terminal has colours, nor every eye."""
    if node.is_true:
        return "★", _TRUE
    if not node.feasible:
        return "✗", _OUT
    return ("●", _KNOWN) if picture.is_known(node) else ("?", _OPEN)


def _edge_style(edge: Edge) -> str:
    if not edge.feasible:
        return _CUT
    return _TRUE_EDGE if edge.is_true else _EDGE


def _legend(picture: UpdateGraphPicture) -> Text:
    entries = [Text("? possible")]
    if any(not node.feasible for node in picture.nodes):
        entries.append(Text("✗ can be excluded", style="dim"))
    if any(picture.is_known(node) for node in picture.nodes):
        entries.append(Text("● known for certain", style=_KNOWN))
    if picture.shows_true_path:
        entries.append(Text("★ the truth", style=_TRUE))
    return Text("   ").join(entries)


def _printable(text: str) -> str:
    return shortened(text, 200)
