"""The rows that releases and update models are read from, wherever they come from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pg_mdistinct.core.errors import MdistinctError

MISSING_COLUMN = "42703"
MISSING_CELL = "23502"
BAD_INPUT = "22023"


class ReleaseRow(NamedTuple):
    """One published row: whose it is (None: nobody's, a counterfeit), where, and its value."""

    release: str
    record: str | None
    group: str
    value: str


class ModelRow(NamedTuple):
    """One possible update; without a probability it is as likely as its siblings."""

    old_value: str
    new_value: str
    probability: str | None


@dataclass(frozen=True)
class Columns:
    """The names of the columns that hold the four things that an attack needs."""

    release: str = "release"
    record: str = "record_id"
    group: str = "gid"
    value: str = "value"

    @property
    def names(self) -> tuple[str, str, str, str]:
        """Return them in the order of a `ReleaseRow`."""
        return (self.release, self.record, self.group, self.value)


MODEL_COLUMNS = ("old_value", "new_value")
PROBABILITY = "probability"


def require_columns(source: str, wanted: Iterable[str], found: Sequence[str], hint: str) -> None:
    """Refuse a source that lacks a column; name all that are missing, and all that are there."""
    missing = [name for name in wanted if name not in found]
    if missing:
        raise MdistinctError(
            f"{source} has no column {_quoted(missing, ' and no column ')}",
            detail=f"Its columns are: {_quoted(found, ', ') or 'none'}.",
            hint=hint,
            sqlstate=MISSING_COLUMN,
        )


RELEASES_HINT = (
    "Say which columns hold release, record, group and sensitive value: foreign.Columns(...), or "
    "--release-column, --record-column, --group-column and --value-column."
)
MODEL_HINT = (
    "An update model has the columns old_value, new_value and, if not all are equally likely, "
    "probability."
)


def release_row(where: str, columns: Columns, cells: Sequence[str | None]) -> ReleaseRow:
    """Build a row; only the record may be missing."""
    release, record, group, value = cells
    if not release or not group or not value:
        empty = [
            name
            for name, cell in zip(columns.names, cells, strict=True)
            if not cell and name != columns.record
        ]
        raise _empty_cell(where, empty, "Only the record may be empty: that is a counterfeit row.")
    return ReleaseRow(release, record or None, group, value)


def model_row(where: str, cells: Sequence[str | None]) -> ModelRow:
    """Build a row; only the probability may be missing."""
    old_value, new_value, probability = cells
    if not old_value or not new_value:
        empty = [name for name, cell in zip(MODEL_COLUMNS, cells, strict=False) if not cell]
        raise _empty_cell(where, empty, "Only the probability may be empty.")
    return ModelRow(old_value, new_value, probability or None)


def _empty_cell(where: str, empty: Sequence[str], hint: str) -> MdistinctError:
    return MdistinctError(
        f"{where}: nothing in {_quoted(empty, ' and ')}",
        hint=hint,
        sqlstate=MISSING_CELL,
    )


def _quoted(names: Sequence[str], separator: str) -> str:
    return separator.join(f'"{name}"' for name in names)
