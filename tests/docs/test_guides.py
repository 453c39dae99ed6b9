"""Every command and every output in the guides is true."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.docs.guide import ROOT, blocks, compare, play

GUIDES = ("client.md", "command-line.md", "learning.md", "queries.md")


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_does_what_it_says(name: str, dsn: str, tmp_path: Path) -> None:
    if shutil.which("psql") is None:
        pytest.skip("psql is not on this machine")
    assert play(ROOT / "docs" / name, dsn, tmp_path) > 3


GUIDE = """\
```sql
SELECT 6 * 7 AS answer;
```

<!-- numbers within 10% -->
```text
 answer
--------
     40
```

```python
value = 3
print(value)
```
```text
3
```

```console
$ echo "$PG_MDISTINCT_DSN" | \\
  wc -l
1
$ echo one; echo two; echo three
one
...
three
```

<!-- not run: there is no such command -->
```console
$ no-such-command
```
"""


def test_a_guide_is_played(tmp_path: Path, dsn: str) -> None:
    path = tmp_path / "guide.md"
    path.write_text(GUIDE)
    assert play(path, dsn, tmp_path) == 5


UNTRUE = (
    ("     40", "     30", "line 7: it prints"),
    (" answer\n--", " query\n--", "line 7: it prints"),
    ("\n3\n", "\n4\n", "line 17: it prints"),
    ("print(value)", "print(values)", "name 'values' is not defined"),
    ("one\n...", "two\n...", "line 21: it prints"),
    ("| \\\n  wc -l", "| \\\n  false", "bash ends with 1"),
    ("<!-- not run: there is no such command -->", "", "not found"),
    ("SELECT 6 * 7 AS answer;", "SELECT 1 / 0;", "division by zero"),
)


def test_what_is_not_true_is_found(tmp_path: Path, dsn: str) -> None:
    path = tmp_path / "guide.md"
    for old, new, message in UNTRUE:
        assert old in GUIDE
        path.write_text(GUIDE.replace(old, new))
        with pytest.raises(AssertionError, match=message):
            play(path, dsn, tmp_path)


def test_trouble_that_a_guide_is_silent_about(tmp_path: Path, dsn: str) -> None:
    path = tmp_path / "guide.md"
    path.write_text("```sql\nSELECT 1 / 0;\n```\n")
    with pytest.raises(AssertionError, match="does not say that this happens: ERROR"):
        play(path, dsn, tmp_path)


def test_blocks_know_their_lines() -> None:
    assert [block.line for block in blocks(GUIDE)] == [2, 7, 13, 17, 21, 32]


def test_numbers_differ_only_where_they_may() -> None:
    compare("a 1.05\n", "a 1.0", 0.1)
    with pytest.raises(AssertionError):
        compare("a 1.05\n", "a 1.0")
    with pytest.raises(AssertionError):
        compare("a 1.05 b\n", "a 1.0", 0.1)
