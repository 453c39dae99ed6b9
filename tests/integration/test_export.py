"""`export` writes a release for somebody without a database: all or nothing, and no membership."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from pyarrow import parquet

from pg_mdistinct.client import Client
from pg_mdistinct.demo import hospital
from tests.integration.cli_cases import (
    Connection,
    as_role,
    invoke,
    make_hospital,
    refused,
    succeeded,
)

FILES = ["README.md", "counterfeits.csv", "release.json", "rows.csv"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def published(db: Connection, release: int) -> list[tuple[Any, ...]]:
    return db.execute(
        "SELECT release::text, gid::text, zip::text, hours::text, disease"
        " FROM mdistinct_published.hospital WHERE release = %s ORDER BY 1, 2, 3, 4, 5",
        [release],
    ).fetchall()


def played(folder: Path) -> dict[str, float]:
    """Runs the program of the README in its folder; what it prints, by value."""
    (program,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.chdir(folder):
        exec(program, {})
    lines = [line.rsplit(" ", 1) for line in printed.getvalue().splitlines()]
    return {value: float(count) for value, count in lines}


def expected_counts(db: Connection, release: int) -> dict[str, float]:
    rows = db.execute(
        "SELECT v.disease, (n - coalesce(c.count, 0)) / n::float8"
        " FROM mdistinct_published.hospital AS v"
        " JOIN (SELECT release, gid, count(*) AS n FROM mdistinct_published.hospital"
        " GROUP BY 1, 2) AS s USING (release, gid)"
        " LEFT JOIN mdistinct_published.hospital_counterfeits AS c USING (release, gid)"
        " WHERE v.release = %s",
        [release],
    )
    counts: Counter[str] = Counter()
    for value, weight in rows:
        counts[value] += weight
    return {value: round(count, 1) for value, count in counts.items()}


def make_counterfeits(db: Connection) -> None:
    """Everybody leaves but one: the next release hides him among counterfeits."""
    db.execute("DELETE FROM hospital WHERE name <> 'Ben'")
    row = db.execute("SELECT counterfeits FROM mdistinct_publish('hospital')").fetchone()
    assert row is not None
    assert row[0] > 0


def test_a_reader_exports(dsn: str, db: Connection, tmp_path: Path) -> None:
    make_hospital(dsn, db)
    make_counterfeits(db)
    folder = tmp_path / "out"
    reader = as_role(dsn, "mdistinct_reader")
    result = succeeded(reader, "export", "hospital", "-o", str(folder))
    assert (result.stdout, names(folder), names(tmp_path)) == ("", FILES, ["out"])
    rows = rows_of(folder / "rows.csv")
    assert sorted(tuple(row.values()) for row in rows) == published(db, 3)
    assert list(rows[0]) == ["release", "gid", "zip", "hours", "disease"]
    counterfeits = rows_of(folder / "counterfeits.csv")
    about = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    assert sum(int(row["count"]) for row in counterfeits) == about["counterfeits"] > 0
    assert (about["dataset"], about["release"], about["rows"]) == ("hospital", 3, len(rows))
    assert about["columns"][2] == {"name": "zip", "type": "int4range"}
    counted = played(folder)
    assert counted == expected_counts(db, 3)
    assert sum(counted.values()) == pytest.approx(1, abs=0.2)
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert f"{len(rows)} rows in {about['groups']} groups" in readme
    assert "`[20,30)` is from 20 to 29" in readme
    assert "$" not in readme


def test_nobody_is_named(dsn: str, db: Connection, tmp_path: Path) -> None:
    """Also for a superuser, who could read the membership."""
    make_hospital(dsn, db)
    for kind in ("csv", "parquet"):
        succeeded(dsn, "export", "hospital", "-o", str(tmp_path / kind), "--format", kind)
    assert parquet.read_schema(tmp_path / "parquet" / "rows.parquet").names == [
        *("release", "gid", "zip", "hours", "disease")
    ]
    written = "".join(path.read_text() for path in (tmp_path / "csv").iterdir())
    # Parquet compresses what it holds.
    written += str(parquet.read_table(tmp_path / "parquet" / "rows.parquet").to_pylist())
    assert written.count("Pneumonia") > 1
    for person in hospital.SNAPSHOTS[0]:
        assert person.name not in written


def test_parquet_of_an_earlier_release(dsn: str, db: Connection, tmp_path: Path) -> None:
    make_hospital(dsn, db)
    make_counterfeits(db)
    folder = tmp_path / "out"
    succeeded(dsn, "export", "hospital", "-o", str(folder), "--format", "parquet", "--release", "1")
    assert names(folder) == ["README.md", "counterfeits.parquet", "release.json", "rows.parquet"]
    with Client(dsn) as client:
        assert parquet.read_table(folder / "rows.parquet").equals(
            client.release("hospital", 1).to_arrow()
        )
    assert played(folder) == expected_counts(db, 1)
    latest = tmp_path / "latest"
    succeeded(dsn, "export", "hospital", "-o", str(latest), "--format", "parquet")
    counted = parquet.read_table(latest / "counterfeits.parquet").to_pylist()
    with Client(dsn) as client:
        assert {row["gid"]: row["count"] for row in counted} == client.release(
            "hospital"
        ).counterfeits
    assert played(latest) == expected_counts(db, 3)


def test_nothing_is_overwritten_unless_forced(dsn: str, db: Connection, tmp_path: Path) -> None:
    make_hospital(dsn, db)
    folder = tmp_path / "out"
    arguments = ("export", "hospital", "-o", str(folder))
    succeeded(dsn, *arguments, "--release", "1")
    before = (folder / "rows.csv").read_bytes()
    assert "--force" in refused(dsn, *arguments)
    assert (folder / "rows.csv").read_bytes() == before
    succeeded(dsn, *arguments, "--force", "--format", "parquet")
    assert names(folder) == ["README.md", "counterfeits.parquet", "release.json", "rows.parquet"]
    (folder / "mine.txt").write_text("precious")
    assert "mine.txt" in refused(dsn, *arguments, "--force")
    assert (folder / "mine.txt").read_text() == "precious"
    (tmp_path / "file").write_text("precious")
    assert "no folder" in refused(
        dsn, "export", "hospital", "-o", str(tmp_path / "file"), "--force"
    )
    assert (tmp_path / "file").read_text() == "precious"
    assert names(tmp_path) == ["file", "out"]


@pytest.mark.tampered
def test_a_failure_leaves_nothing(dsn: str, db: Connection, tmp_path: Path) -> None:
    make_hospital(dsn, db)
    arguments = ("export", "hospital", "-o", str(tmp_path / "out"))
    succeeded(dsn, *arguments)
    before = (tmp_path / "out" / "rows.csv").read_bytes()
    # The rows are read, the counterfeits cannot be.
    db.execute("DROP VIEW mdistinct_published.hospital_counterfeits")
    assert "hospital_counterfeits" in refused(dsn, *arguments, "--force", "--release", "1")
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out" / "rows.csv").read_bytes() == before


def test_what_cannot_be_exported(dsn: str, db: Connection, tmp_path: Path) -> None:
    make_hospital(dsn, db, releases=1)
    out = ("-o", str(tmp_path / "out"))
    assert "nothing has been published" in refused(dsn, "export", "nowhere", *out)
    assert "no release 7; it has 1 to 1" in refused(
        dsn, "export", "hospital", *out, "--release", "7"
    )
    publisher = as_role(dsn, "mdistinct_publisher")
    assert "permission denied" in refused(publisher, "export", "hospital", *out)
    missing = str(tmp_path / "no" / "out")
    assert "cannot write" in refused(dsn, "export", "hospital", "-o", missing)
    assert invoke(dsn, "export", "hospital").exit_code == 2
    assert names(tmp_path) == []


def test_types_are_written_alike_in_every_session(dsn: str, db: Connection, tmp_path: Path) -> None:
    db.execute(
        "CREATE TABLE visits AS SELECT i AS id, now() + i * interval '1 hour' AS seen,"
        " current_date + i AS born, i / 7.0 AS pay, chr(228 + i % 3) AS town,"
        " (ARRAY['Flu', 'Gout'])[1 + i % 2] AS disease FROM generate_series(1, 12) AS i"
    )
    with Client(dsn) as client:
        client.register("ward", "visits", "id", ["seen", "born", "pay", "town"], "disease", 2)
        client.load_updates("ward", {value: ["Flu", "Gout"] for value in ("Flu", "Gout")})
        client.publish("ward")
    odd = psycopg.conninfo.make_conninfo(
        dsn, options="-c datestyle=SQL,DMY -c timezone=Asia/Kathmandu -c client_encoding=LATIN1"
    )
    for number, session in enumerate((dsn, odd)):
        succeeded(session, "export", "ward", "-o", str(tmp_path / str(number)))
    assert len({(tmp_path / each / "rows.csv").read_bytes() for each in "01"}) == 1
    readme = (tmp_path / "0" / "README.md").read_text(encoding="utf-8")
    for words in ("UTC, both ends included", "7th of March", "from 1.5 to 2.5", "`{Ayr,"):
        assert words in readme


def test_odd_names(dsn: str, db: Connection, tmp_path: Path) -> None:
    dataset, column = "a/b |`$x`", 'what "is" it?'
    columns = sql.Identifier(column)
    db.execute(sql.SQL("CREATE TABLE t (id int, age int, {} text)").format(columns))
    db.execute("INSERT INTO t SELECT i, i, chr(228 + i % 2) FROM generate_series(1, 6) AS i")
    with Client(dsn) as client:
        client.register(dataset, "t", "id", ["age"], column, 2)
        client.load_updates(dataset, {"ä": ["ä", "å"], "å": ["ä", "å"]})
        client.publish(dataset)
    for kind in ("csv", "parquet"):
        folder = tmp_path / kind
        succeeded(dsn, "export", dataset, "-o", str(folder), "--format", kind)
        assert played(folder) == {"ä": 3.0, "å": 3.0}
