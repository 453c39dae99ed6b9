"""The pictures of docs/ are those that the project's code draws."""

from __future__ import annotations

import re

from tests.docs.pictures import pictures
from tests.docs.renewal import check_current
from tests.documents import FOLDER


def test_pictures_are_current() -> None:
    for name, svg in pictures().items():
        check_current(FOLDER / "pictures" / name, svg)
    assert {path.name for path in (FOLDER / "pictures").iterdir()} == pictures().keys()


def test_pictures_are_used_and_described() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md"))
    shown = dict(re.findall(r"!\[([^]]+)\]\(pictures/([^)]+)\)", text))
    assert set(shown.values()) == pictures().keys()
    assert all(len(words) > 30 for words in shown)
