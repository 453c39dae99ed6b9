"""Reads what README.md and the guides in docs/ tell their readers to type, and what they show."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs"
_BLOCK = re.compile(
    r"(?:^<!-- (?P<comment>[^\n]*) -->\n+)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_WITHIN = re.compile(r"numbers within (\d+)%( or 0)?")
_FILE = re.compile(r"file: (\S+)")
_LEFT_OUT = re.compile(r"not run: \S.*")


@dataclass(frozen=True)
class Block:
    """A block of a guide, with what a comment says of it, and its first line's number."""

    language: str
    text: str
    comment: str
    line: int

    @property
    def is_left_out(self) -> bool:
        """Whether the block is for reading only."""
        return bool(_LEFT_OUT.fullmatch(self.comment))

    @property
    def tolerance(self) -> float | None:
        """By which share numbers may differ, if they may."""
        found = _WITHIN.fullmatch(self.comment)
        return found and int(found[1]) / 100

    @property
    def may_be_zero(self) -> bool:
        """Whether a number may also be 0."""
        found = _WITHIN.fullmatch(self.comment)
        return bool(found and found[2])

    @property
    def is_drawn_by_chance(self) -> bool:
        """Whether only the kinds of its cells are known."""
        return self.comment == "drawn by chance"

    @property
    def file(self) -> str | None:
        """The name of the file that the reader is to save it as."""
        found = _FILE.fullmatch(self.comment)
        return found and found[1]

    def replaced(self, changes: Mapping[str, str]) -> str:
        """The text for another place; what is to be changed must be in it."""
        text = self.text
        for pattern, other in changes.items():
            text, count = re.subn(pattern, other.replace("\\", r"\\"), text)
            assert count, f"{pattern!r} is not in:\n{self.text}"
        return text


def blocks_of(text: str) -> list[Block]:
    """All blocks of a text, in order."""
    return [
        Block(
            found["language"],
            found["text"],
            found["comment"] or "",
            1 + text.count("\n", 0, found.start("text")),
        )
        for found in _BLOCK.finditer(text)
    ]


def blocks(name: str) -> list[Block]:
    """All blocks of a guide in docs/, in order."""
    return blocks_of((FOLDER / name).read_text(encoding="utf-8"))


def block(name: str, beginning: str) -> Block:
    """The one block of a guide that begins like this."""
    (found,) = (each for each in blocks(name) if each.text.startswith(beginning))
    return found
