"""Rows cut into balanced templates, against trying all ways."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from pg_mdistinct.core.templates import _balanced_parts


def can_be_cut(rows: Counter[int], size: int) -> bool:
    """Try every balanced template that takes some of the rows."""
    if not rows:
        return True
    return any(
        can_be_cut(rows - Counter(list(chosen) * (size // parts)), size)
        for parts in range(1, size + 1)
        if size % parts == 0
        for chosen in combinations([t for t in rows if rows[t] >= size // parts], parts)
    )


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.sampled_from((2, 3, 4)))
def test_rows_are_cut_into_balanced_templates_wherever_that_can_be(
    counts: list[int], size: int
) -> None:
    rows = Counter(dict(enumerate(counts)))
    parts = _balanced_parts(rows, size)
    assert (parts is not None) == can_be_cut(rows, size)
    if parts is not None:
        assert sum((Counter(part) for part in parts), Counter()) == rows
        assert all(len(part) == size for part in parts)
        assert all(len(set(Counter(part).values())) == 1 for part in parts)
