"""Reads releases and update models from CSV files."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader, TextIOWrapper
from pathlib import Path

from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.foreign.rows import (
    BAD_INPUT,
    MODEL_COLUMNS,
    MODEL_HINT,
    PROBABILITY,
    RELEASES_HINT,
    Columns,
    ModelRow,
    ReleaseRow,
    model_row,
    release_row,
    require_columns,
)

Progress = Callable[[float], None]
"""Told now and then which share of the file has been read."""

NO_FILE = "58P01"
REPORT_EVERY = 20_000
_DELIMITERS = ",;\t"


def csv_releases(
    path: str | Path, columns: Columns | None = None, progress: Progress = lambda share: None
) -> Iterator[ReleaseRow]:
    """Go through the rows of published tables: one line a row, all releases in one file."""
    columns = columns or Columns()
    path = Path(path)
    with _opened(path) as (raw, file):
        lines = _lines(path, raw, file, progress)
        header = next(lines)[1]
        require_columns(path.name, columns.names, header, RELEASES_HINT)
        places = [header.index(name) for name in columns.names]
        for number, cells in lines:
            where = f"{path.name}, line {number}"
            yield release_row(where, columns, [cells[place] for place in places])


def csv_model(path: str | Path) -> Iterator[ModelRow]:
    """Go through the rows of an update model."""
    path = Path(path)
    with _opened(path) as (raw, file):
        lines = _lines(path, raw, file)
        header = next(lines)[1]
        require_columns(path.name, MODEL_COLUMNS, header, MODEL_HINT)
        places = [header.index(name) for name in MODEL_COLUMNS]
        given = header.index(PROBABILITY) if PROBABILITY in header else None
        for number, cells in lines:
            probability = None if given is None else cells[given]
            values = [cells[place] for place in places]
            yield model_row(f"{path.name}, line {number}", [*values, probability])


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BufferedReader, TextIOWrapper]]:
    try:
        # "sig": a byte order mark is no part of the first column's name.
        with path.open("rb") as raw, TextIOWrapper(raw, "utf-8-sig", newline="") as file:
            yield raw, file
    except OSError as error:
        raise MdistinctError(
            f"cannot read {path}: {error.strerror}",
            hint="Give the path of a CSV file with a line of column names.",
            sqlstate=NO_FILE,
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise MdistinctError(
            f"{path.name} is not a CSV file in UTF-8: {error}",
            hint="Export it as CSV, encoded in UTF-8, with a line of column names.",
            sqlstate=BAD_INPUT,
        ) from error


def _lines(
    path: Path,
    raw: BufferedReader,
    file: TextIOWrapper,
    progress: Progress = lambda share: None,
) -> Iterator[tuple[int, Sequence[str]]]:
    """Return the header, then the other lines with their numbers; all are of equal length."""
    reader = csv.reader(file, delimiter=_delimiter(file.readline()))
    file.seek(0)
    header = [name.strip() for name in next(reader, [])]
    yield 1, header
    size = max(path.stat().st_size, 1)
    for row, cells in enumerate(reader):
        if not cells:
            continue
        if len(cells) != len(header):
            raise MdistinctError(
                f"{path.name}, line {reader.line_num}: {len(cells)} cells, "
                f"but {len(header)} columns",
                hint="Put values that contain the separator into double quotes.",
                sqlstate=BAD_INPUT,
            )
        if row % REPORT_EVERY == 0:
            progress(raw.tell() / size)
        yield reader.line_num, cells


def _delimiter(header: str) -> str:
    """Choose the separator that the header uses most; spreadsheets do not agree on one."""
    return max(_DELIMITERS, key=header.count)
