"""Every command and every output in the guides is true."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.docs.guide import compare, play
from tests.documents import FOLDER, ROOT, blocks_of

PLAYED = (
    "README.md",
    "docs/choosing-m.md",
    "docs/client.md",
    "docs/command-line.md",
    "docs/export.md",
    "docs/learning.md",
    "docs/queries.md",
    "docs/quickstart.md",
    "docs/report.md",
    "docs/upgrade.md",
    "docs/variants.md",
    "docs/why.md",
)
ELSEWHERE = {
    "docs/changes.md": "tests/lifecycle: servers of their own are dumped, restored and upgraded",
    "docs/experiments.md": "tests/unit: the experiments have tests of their own",
    "docs/install.md": "test_docs_install.py and test_wheel.py, block by block",
    "docs/performance.md": "the benchmarks take too long for a test",
}


@pytest.mark.parametrize("name", PLAYED)
def test_a_guide_does_what_it_says(name: str, dsn: str, tmp_path: Path) -> None:
    if shutil.which("psql") is None:
        pytest.skip("psql is not on this machine")
    assert play(ROOT / name, dsn, tmp_path) > 0


def test_every_block_of_all_other_guides_says_why_it_is_not_run() -> None:
    for path in [ROOT / "README.md", *FOLDER.rglob("*.md")]:
        name = path.relative_to(ROOT).as_posix()
        if name in (*PLAYED, *ELSEWHERE):
            continue
        for block in blocks_of(path.read_text(encoding="utf-8")):
            # test_image.py runs all SQL of this one, on a server that has pg_cron.
            by_image = name == "docs/scheduling.md" and block.language == "sql"
            assert by_image or block.is_left_out, f"{name}, line {block.line}"


LINK = re.compile(r"\]\((?!https?:)(?P<path>[^)#]*)(?:#(?P<anchor>[^)]*))?\)")


def test_links_lead_somewhere() -> None:
    for path in [*ROOT.glob("*.md"), *FOLDER.rglob("*.md"), ROOT / "docker" / "README.md"]:
        for link in LINK.finditer(path.read_text(encoding="utf-8")):
            target = (path.parent / link["path"]).resolve() if link["path"] else path
            assert target.exists(), f"{path.name}: {link[0]}"
            assert link["anchor"] in (None, *anchors(target)), f"{path.name}: {link[0]}"


def anchors(path: Path) -> list[str]:
    """The names that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_the_map_leads_to_every_guide() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    found = {(FOLDER / link["path"]).resolve() for link in LINK.finditer(text)}
    assert {path.resolve() for path in FOLDER.rglob("*.md")} - {FOLDER / "README.md"} <= found


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

<!-- file: table.csv -->
```csv
one,two
```

```sh
grep two table.csv
```

```sql
SELECT random() AS drawn, int4range(3, 5) AS range, '{a}'::text[] AS set, 'Flu' AS disease;
```
<!-- drawn by chance -->
```text
 drawn | range | set   | disease
-------+-------+-------+---------
 0.127 | [1,9) | {b,c} | Pneumonia
```
"""


def test_a_guide_is_played(tmp_path: Path, dsn: str) -> None:
    path = tmp_path / "guide.md"
    path.write_text(GUIDE)
    assert play(path, dsn, tmp_path) == 9


UNTRUE = (
    ("     40", "     30", "line 7: it prints"),
    (" answer\n--", " query\n--", "line 7: it prints"),
    ("\n3\n", "\n4\n", "line 17: it prints"),
    ("print(value)", "print(values)", "name 'values' is not defined"),
    ("one\n...", "two\n...", "line 21: it prints"),
    ("| \\\n  wc -l", "| \\\n  false", "bash ends with 1"),
    ("<!-- not run: there is no such command -->", "", "not found"),
    ("SELECT 6 * 7 AS answer;", "SELECT 1 / 0;", "division by zero"),
    ("<!-- file: table.csv -->", "", "nobody runs this block"),
    ("<!-- file: table.csv -->", "<!-- file: other.csv -->", "bash ends with 2"),
    ("grep two", "grep three", "bash ends with 1"),
    ("[1,9)", "9", "it prints"),
    ("{b,c}", "b", "it prints"),
    ("drawn | range", "value | range", "it prints"),
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
    assert [block.line for block in blocks_of(GUIDE)] == [2, 7, 13, 17, 21, 32, 37, 41, 45, 49]


def test_numbers_differ_only_where_they_may() -> None:
    compare("a 1.05\n", "a 1.0", 0.1)
    with pytest.raises(AssertionError):
        compare("a 1.05\n", "a 1.0")
    with pytest.raises(AssertionError):
        compare("a 1.05 b\n", "a 1.0", 0.1)
    compare("a 0\n", "a 1.0", 0.1, or_zero=True)
    for printed, or_zero in (("a 0", False), ("a 0.5", True), ("0 1.0", True)):
        with pytest.raises(AssertionError):
            compare(printed, "a 1.0", 0.1, or_zero=or_zero)
