"""The README of an export: what the files mean to somebody who has nothing else."""

from __future__ import annotations

from string import Template

from pg_mdistinct.client import PublishedColumn, Release, ReleaseInfo

_TEXT = Template("""\
# Release $release of $dataset

Published $published_at. $rows rows in $groups groups, of which $counterfeits rows are counterfeits:
$records records of real people or things.

| file | holds |
|---|---|
| `$rows_file` | the rows |
| `$counterfeits_file` | how many rows of a group are counterfeits, for groups that have any |
| `release.json` | the figures above and the types of the columns, for programs |

## What a row means

Rows of one group, which have the same `gid`, show the same ranges and sets. Each group has at least
$m different values of $sensitive. Which of its rows belongs to whom cannot be told, and is not in
these files. Numbers of groups mean nothing outside of this release: do not join releases by `gid`.

| column | means |
|---|---|
$columns

## Counting

Counterfeits are rows that stand for nobody. They were added so that no sequence of releases gives
anybody away, and look like all the others: which rows they are cannot be told, only how many a
group has. **Never count rows as they are.** Of a group of n rows with c counterfeits, count each
row as (n − c) / n. That leaves the counterfeits out on average, and exactly where all rows of a
group are counted.

Where a range or set meets a question in part only, count that share of the row: of a range of ages
from 20 to 29, the question "25 to 29" takes half; of a set of three towns, one town takes a third.
The result is an estimate. It is good for many rows, and says nothing about a single one.

How many records have each value of $sensitive, in Python$needs:

```python
$program```

Where the release is in a database, `pg-mdistinct estimate` does all of this, with standard errors.
""")

_CSV = Template("""\
import csv
from collections import Counter

with open("$rows_file", newline="", encoding="utf-8") as file:
    rows = list(csv.DictReader(file))
with open("$counterfeits_file", newline="", encoding="utf-8") as file:
    counterfeits = {row["gid"]: int(row["count"]) for row in csv.DictReader(file)}
""")
_PARQUET = Template("""\
from collections import Counter

from pyarrow import parquet

rows = parquet.read_table("$rows_file").to_pylist()
counted = parquet.read_table("$counterfeits_file").to_pylist()
counterfeits = {row["gid"]: row["count"] for row in counted}
""")
_COUNT = Template("""\
sizes = Counter(row["gid"] for row in rows)
weights = {gid: (n - counterfeits.get(gid, 0)) / n for gid, n in sizes.items()}
counts = Counter()
for row in rows:
    counts[row[$sensitive]] += weights[row["gid"]]
for value, count in counts.most_common():
    print(value, round(count, 1))
""")

# A type's word, and its ends: PostgreSQL writes whole numbers and days without the upper one.
_WHOLE = ("[20,30)", "from 20 to 29: the lower end is included, the upper one is not")
_DAYS = (
    "[2024-03-01,2024-03-08)",
    "from the 1st to the 7th of March 2024: the lower end is included, the upper one is not",
)
_MOMENTS = (
    '["2024-03-01 08:00:00","2024-03-01 09:30:00"]',
    "from 8:00 to 9:30, both ends included",
)
_RANGES = {
    "int4range": _WHOLE,
    "int8range": _WHOLE,
    "numrange": ("[1.5,2.5]", "from 1.5 to 2.5, both ends included"),
    "daterange": _DAYS,
    "tsrange": _MOMENTS,
    "tstzrange": (
        '["2024-03-01 08:00:00+00","2024-03-01 09:30:00+00"]',
        "from 8:00 to 9:30 UTC, both ends included",
    ),
}


def readme(
    info: ReleaseInfo, release: Release, kind: str, rows_file: str, counterfeits_file: str
) -> str:
    """The text for a release in files of this kind."""
    names = {"rows_file": rows_file, "counterfeits_file": counterfeits_file}
    read = (_CSV if kind == "csv" else _PARQUET).substitute(names)
    count = _COUNT.substitute(sensitive=ascii(release.sensitive_column))
    return _TEXT.substitute(
        names,
        dataset=_name(info.dataset),
        release=info.release,
        published_at=f"{info.published_at:%Y-%m-%d}",
        m=info.m,
        rows=info.rows,
        groups=info.groups,
        counterfeits=info.counterfeits,
        records=info.rows - info.counterfeits,
        sensitive=_name(release.sensitive_column),
        columns="\n".join(_column(column, release, kind) for column in release.columns),
        needs="" if kind == "csv" else " with pyarrow",
        program=f"{read}\n{count}",
    )


def _column(column: PublishedColumn, release: Release, kind: str) -> str:
    return f"| {_name(column.name)} | {_meaning(column, release, kind)} |"


def _meaning(column: PublishedColumn, release: Release, kind: str) -> str:
    if column.name == release.sensitive_column:
        return "the sensitive value, as it is"
    if column.name not in release.qi_columns:
        return {"release": "the number of the release", "gid": "the group"}[column.name]
    missing = "; empty: this release does not have the column"
    if column.type in _RANGES:
        example, words = _RANGES[column.type]
        if kind == "parquet":
            words = (
                f"a structure of `lower` and `upper`, which PostgreSQL writes `{example}`: {words}"
            )
        else:
            words = f"`{example}` is {words}"
        return f"a range that holds the value of every record of the group; {words}{missing}"
    example = '`{Ayr,"St Ives"}`' if kind == "csv" else "a list"
    return f"the set of all values in the group: {example}{missing}"


def _name(name: str) -> str:
    """A name of the user's for Markdown: as code, on one line, harmless in a table."""
    plain = " ".join(name.split()).replace("|", "\\|")
    fence = "``" if "`" in plain else "`"
    pad = " " if "`" in plain else ""
    return f"{fence}{pad}{plain}{pad}{fence}"
