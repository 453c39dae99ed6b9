"""Files of docs/ that are generated: compared with what they would be now, or renewed.

PG_MDISTINCT_RENEW=1 pytest tests/docs/test_reference.py tests/docs/test_pictures.py
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import pytest

RENEW = "PG_MDISTINCT_RENEW"
RENEWED_BY = f"{RENEW}=1 pytest tests/docs/test_reference.py tests/docs/test_pictures.py"


def check_current(path: Path, found: str) -> None:
    """Fails with the difference where the file is not what it would be now; or writes it anew."""
    if os.environ.get(RENEW):
        path.write_text(found, encoding="utf-8")
    there = path.read_text(encoding="utf-8") if path.exists() else ""
    if found != there:
        difference = difflib.unified_diff(
            there.splitlines(), found.splitlines(), path.name, "now", lineterm="", n=1
        )
        pytest.fail("\n".join([*difference, f"Run this test with {RENEW}=1 to renew it."]))
