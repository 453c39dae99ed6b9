"""Unpacks numbers that PostgreSQL has sent as one string of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pg_mdistinct.core.arrays import IntArray, Ragged
from pg_mdistinct.server.plpython import Row


def numbers(packed: bytes | None, dtype: str) -> npt.NDArray[Any]:
    """Return numbers of the given type, in the machine's own byte order."""
    sent = np.frombuffer(packed or b"", dtype=dtype)
    return sent.astype(sent.dtype.newbyteorder("="))


def integers(packed: bytes | None) -> IntArray:
    """Return what a string_agg over int4send has gathered; NULL if there was nothing."""
    return numbers(packed, ">i4").astype(np.int64)


def gather(**columns: str) -> str:
    """Return the SELECT list that packs integer expressions, all in the same order of rows."""
    return ", ".join(
        f"pg_catalog.string_agg(pg_catalog.int4send({expression}), '') AS {name}"
        for name, expression in columns.items()
    )


def gather_arrays(name: str, expression: str) -> str:
    """Return the SELECT list that packs an expression of type integer[], for ``ragged``."""
    return (
        f"{gather(**{f'{name}_lengths': f'pg_catalog.cardinality({expression})'})},"
        f" pg_catalog.string_agg(pg_catalog.array_send({expression}), '') AS {name}"
    )


def ragged(row: Row, name: str) -> Ragged:
    """Return what ``gather_arrays`` has packed: one row an array.

    An array is sent as five numbers (dimensions, flags, type, length, lower bound) and, for each
    element, its size and the element; an empty one as three.
    """
    lengths = integers(row[f"{name}_lengths"])
    sent = integers(row[name])
    size = np.where(lengths > 0, 5 + 2 * lengths, 3)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    first_element = np.cumsum(size) - size + 6
    return Ragged(offsets, sent[np.repeat(first_element, lengths) + 2 * within])
