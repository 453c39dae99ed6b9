"""The files of an export: rows, counterfeits, what they are in JSON, and a README."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from pg_mdistinct.cli.export.readme import readme
from pg_mdistinct.client import Release, ReleaseInfo
from pg_mdistinct.client.calls import PUBLISHED

ABOUT, README = "release.json", "README.md"


@dataclass(frozen=True)
class Files:
    """The names of the two files with data, whose format their endings tell."""

    kind: str

    @property
    def rows(self) -> str:
        """The file with the rows of the release."""
        return f"rows.{self.kind}"

    @property
    def counterfeits(self) -> str:
        """The file with the number of counterfeits of each group that has any."""
        return f"counterfeits.{self.kind}"


ALL_FILES = frozenset(
    {
        ABOUT,
        README,
        *(
            name
            for kind in ("csv", "parquet")
            for name in (Files(kind).rows, Files(kind).counterfeits)
        ),
    }
)
"""What any export can hold, and nothing else does."""


def write(
    folder: Path,
    connection: psycopg.Connection[Any],
    info: ReleaseInfo,
    release: Release,
    kind: str,
) -> None:
    """Fills the folder with a release."""
    files = Files(kind)
    if kind == "csv":
        _write_csv(connection, release.dataset, info.release, folder / files.rows)
        name = f"{release.dataset}_counterfeits"
        _write_csv(connection, name, info.release, folder / files.counterfeits)
    else:
        _write_parquet(release, folder, files)
    columns = [asdict(column) for column in release.columns]
    about = {**asdict(info), "published_at": info.published_at.isoformat(), "columns": columns}
    _write_text(folder / ABOUT, json.dumps(about, ensure_ascii=False, indent=2) + "\n")
    _write_text(folder / README, readme(info, release, kind, files.rows, files.counterfeits))


def _write_csv(connection: psycopg.Connection[Any], view: str, number: int, path: Path) -> None:
    """Streams a view, so that a release of any size goes through."""
    query = sql.SQL(
        "COPY (SELECT * FROM {} AS v WHERE v.release = {} ORDER BY v.gid) TO STDOUT"
        " (FORMAT csv, HEADER, ENCODING 'UTF8')"
    ).format(sql.Identifier(PUBLISHED, view), sql.Literal(number))
    with path.open("wb") as file, connection.cursor().copy(query) as data:
        for block in data:
            file.write(block)


def _write_parquet(release: Release, folder: Path, files: Files) -> None:
    table = release.to_arrow()
    # Installed, or the line above would have said how to install it.
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(table, folder / files.rows)
    counterfeits = release.counterfeits
    counted = {
        "release": pa.array([release.release] * len(counterfeits), pa.int32()),
        "gid": pa.array(counterfeits.keys(), pa.int32()),
        "count": pa.array(counterfeits.values(), pa.int32()),
    }
    parquet.write_table(pa.table(counted), folder / files.counterfeits)


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
