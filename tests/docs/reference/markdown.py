"""Parts of Markdown pages."""

from __future__ import annotations

from collections.abc import Sequence

from tests.docs.renewal import RENEWED_BY


def flat(text: str) -> str:
    """A text in one line."""
    return " ".join(text.split())


def sentence(words: str) -> str:
    """Words with a full stop."""
    return words if words.endswith(".") else f"{words}."


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table; nothing where there are no rows, and without columns that are empty throughout."""
    cells = [[str(cell or "").replace("|", "\\|") for cell in row] for row in rows]
    kept = [i for i in range(len(headings)) if any(row[i] for row in cells)]
    if not kept:
        return ""
    lines = [
        [headings[i] for i in kept],
        ["---"] * len(kept),
        *([r[i] for i in kept] for r in cells),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(title: str, source: str, *parts: str) -> str:
    """A page of parts, those that are empty left out, which tells what it was generated from."""
    note = f"Generated from {source}; to renew it, run `{RENEWED_BY}`."
    return "\n\n".join([f"# {title}", note, *filter(None, parts)]) + "\n"
