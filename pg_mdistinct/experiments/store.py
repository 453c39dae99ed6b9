"""Keeps what experiments find: CSV and SVG files in a folder, and which of them are finished."""

from __future__ import annotations

import csv
import io
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

from pg_mdistinct import __version__
from pg_mdistinct.experiments.registry import Cell, Outcome, Setting, Table

FINISHED = "finished.json"


@dataclass(frozen=True)
class Store:
    """A folder of results; a file is there as a whole, or not at all.

    An experiment is noted in ``finished.json`` after all its files are there, with what it depends
    on: scale, seed and version.
    """

    folder: Path

    def has(self, name: str, setting: Setting) -> bool:
        """Tell whether an experiment was finished with the same parameters."""
        note = self._notes().get(name)
        return (
            note is not None
            and note["parameters"] == _parameters(setting)
            and all((self.folder / file).exists() for file in note["files"])
        )

    def keep(self, name: str, setting: Setting, outcome: Outcome, seconds: float) -> list[Path]:
        """Write all files of an experiment and note that it is finished; return the files."""
        # Drawing takes a second to import, which those who only list experiments need not wait for.
        from pg_mdistinct.experiments.charts import draw

        contents = {f"{table.name}.csv": as_csv(table) for table in outcome.tables}
        contents |= {f"{chart.name}.svg": draw(chart) for chart in outcome.charts}
        self.folder.mkdir(parents=True, exist_ok=True)
        for file, content in contents.items():
            _write(self.folder / file, content)
        notes = self._notes() | {
            name: {
                "parameters": _parameters(setting),
                "seconds": round(seconds, 1),
                "files": sorted(contents),
            }
        }
        _write(self.folder / FINISHED, json.dumps(notes, indent=2, sort_keys=True) + "\n")
        return [self.folder / file for file in contents]

    def _notes(self) -> dict[str, dict[str, Any]]:
        path = self.folder / FINISHED
        if not path.exists():
            return {}
        notes: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        return notes


def as_csv(table: Table) -> str:
    """Return a table as text, numbers with six digits: more would only be noise."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([_shown(cell) for cell in row] for row in table.rows)
    return text.getvalue()


def _shown(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def _parameters(setting: Setting) -> dict[str, object]:
    return asdict(setting) | {"version": __version__}


def _write(path: Path, content: str) -> None:
    """Replace a file in one step, so that nobody ever sees half of it."""
    unfinished = path.with_name(f".{path.name}.{token_hex(4)}")
    try:
        with unfinished.open("x", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
