"""Unpacks numbers that PostgreSQL has sent as one string of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pg_mdistinct.core.arrays import IntArray


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
