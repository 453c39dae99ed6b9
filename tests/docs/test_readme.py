"""What README.md shows of the demo is what the demo prints."""

from __future__ import annotations

import io

from rich.console import Console

from pg_mdistinct.demo import play
from tests.docs.guide import compare
from tests.documents import ROOT, blocks_of


def test_the_excerpt_is_the_demos(dsn: str) -> None:
    (excerpt,) = (
        block.text
        for block in blocks_of((ROOT / "README.md").read_text(encoding="utf-8"))
        if "compares it with what the demo prints" in block.comment
    )
    screen = io.StringIO()
    play(dsn, Console(file=screen, width=100, color_system=None))
    compare(screen.getvalue(), f"...\n{excerpt}...")
