"""Reads what the guides in docs/ tell their readers to type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs"
_BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A part of a guide that is to be copied."""

    language: str
    text: str

    def replaced(self, changes: Mapping[str, str]) -> str:
        """The text for another place; what is to be changed must be in it."""
        text = self.text
        for pattern, other in changes.items():
            text, count = re.subn(pattern, other.replace("\\", r"\\"), text)
            assert count, f"{pattern!r} is not in:\n{self.text}"
        return text


def blocks(name: str) -> list[Block]:
    """All blocks of a guide, in order."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    return [Block(found["language"], found["text"]) for found in _BLOCK.finditer(text)]


def block(name: str, beginning: str) -> Block:
    """The one block of a guide that begins like this."""
    (found,) = (each for each in blocks(name) if each.text.startswith(beginning))
    return found
