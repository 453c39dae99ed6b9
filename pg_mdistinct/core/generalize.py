"""Generalize groups: what of its members' quasi-identifiers a group shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pg_mdistinct.core.arrays import IntArray, Ragged, places_of
from pg_mdistinct.core.compiled import kernel
from pg_mdistinct.core.snapshot import QiColumn, Snapshot

DONORS_TRIED = 32
HIGHEST = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Generalized:
    """Per QI column and group: lowest and highest code and, for sets, the codes themselves."""

    low: list[IntArray]
    high: list[IntArray]
    members: list[Ragged | None]
    ncp: float


def scaled_positions(snapshot: Snapshot) -> npt.NDArray[np.float32]:
    """Return where every record lies, each column scaled to 0..1; without columns, all at 0.

    A record's numbers lie next to each other, so that it can be fetched in one go.
    """
    columns = [
        (column.position[column.code] - column.position[0]) / (column.width or 1.0)
        for column in snapshot.qi
        if len(column.position)
    ] or [np.zeros(len(snapshot))]
    return np.array(columns, dtype=np.float32).reshape(len(columns), len(snapshot)).T.copy()


def counterfeit_codes(
    snapshot: Snapshot,
    position: npt.NDArray[np.float32],
    group: IntArray,
    bucket_of_group: IntArray,
    counterfeit_group: IntArray,
    rng: np.random.Generator,
) -> list[IntArray]:
    """Give every counterfeit quasi-identifiers of its own: those of a real record close by.

    A donor comes from a neighbouring group of the same bucket, or else is the nearest of a few
    records drawn at random. A group whose members all coincide is widened by one step in every
    column, so that its range does not spell out its only real record.
    """
    if not len(counterfeit_group):
        return [column.code[:0] for column in snapshot.qi]
    members = places_of(group, len(bucket_of_group))
    donors = np.array(
        [_donor(int(g), members, bucket_of_group, position, rng) for g in counterfeit_group],
        dtype=np.int64,
    )
    codes = [column.code[donors] for column in snapshot.qi]
    for i, g in enumerate(counterfeit_group):
        shown = [column.code[members.row(int(g))] for column in snapshot.qi]
        if all((column == own[i]).all() for column, own in zip(shown, codes, strict=True)):
            for column, own in zip(snapshot.qi, codes, strict=True):
                own[i] = _step_aside(int(own[i]), column, rng)
    return codes


def _donor(
    g: int,
    members: Ragged,
    bucket_of_group: IntArray,
    position: npt.NDArray[np.float32],
    rng: np.random.Generator,
) -> int:
    beside = [
        other
        for other in (g - 1, g + 1)
        if 0 <= other < len(bucket_of_group) and bucket_of_group[other] == bucket_of_group[g]
    ]
    if beside:
        return int(rng.choice(members.row(int(rng.choice(beside)))))
    tried = rng.integers(len(position), size=DONORS_TRIED)
    distance = np.abs(position[tried] - position[members.row(g)[0]]).sum(axis=1)
    distance[distance == 0] = np.inf
    return int(tried[np.argmin(distance)])


def _step_aside(code: int, column: QiColumn, rng: np.random.Generator) -> int:
    """Return a neighbouring value of the column, if it has another one."""
    beside = [other for other in (code - 1, code + 1) if 0 <= other < len(column.position)]
    return int(rng.choice(beside)) if beside else code


def generalize(
    snapshot: Snapshot,
    group: IntArray,
    groups: int,
    counterfeit_group: IntArray,
    counterfeits: list[IntArray],
) -> Generalized:
    """Find what each group shows of each column, and how much information that loses."""
    everyone = np.concatenate([group, counterfeit_group])
    real_rows = np.bincount(group, minlength=groups)
    result = Generalized([], [], [], 0.0)
    lost = 0.0
    for column, own in zip(snapshot.qi, counterfeits, strict=True):
        codes = np.concatenate([column.code, own])
        low, high = _ends(everyone, codes, groups)
        members = _distinct(everyone, codes, groups) if column.is_set else None
        result.low.append(low)
        result.high.append(high)
        result.members.append(members)
        lost += float((real_rows * _loss(column, low, high, members)).sum())
    cells = max(len(group) * len(snapshot.qi), 1)
    return Generalized(result.low, result.high, result.members, lost / cells)


@kernel()
def _ends(group, codes, groups):  # type: ignore[no-untyped-def]
    """Return the lowest and the highest code of each group; none is empty."""
    low, high = np.full(groups, HIGHEST), np.zeros(groups, dtype=np.int64)
    for i in range(len(codes)):
        low[group[i]] = min(low[group[i]], codes[i])
        high[group[i]] = max(high[group[i]], codes[i])
    return low, high


def _distinct(group: IntArray, codes: IntArray, groups: int) -> Ragged:
    """Return the sorted distinct codes of each group."""
    width = int(codes.max(initial=0)) + 1
    pairs = np.unique(group * width + codes)
    counts = np.bincount(pairs // width, minlength=groups)
    return Ragged(np.concatenate(([0], np.cumsum(counts))).astype(np.int64), pairs % width)


def _loss(
    column: QiColumn, low: IntArray, high: IntArray, members: Ragged | None
) -> npt.NDArray[np.float64]:
    """Return each group's width as a share of the column's width in the snapshot.

    Values that only counterfeits have do not count as part of the snapshot.
    """
    if not len(column.code):
        return np.zeros(len(low))
    lowest, highest = column.code.min(), column.code.max()
    whole = float(column.position[highest] - column.position[lowest])
    if members is not None:
        whole = float(len(np.unique(column.code)) - 1)
        return (members.lengths - 1) / whole if whole else np.zeros(len(low))
    return (column.position[high] - column.position[low]) / whole if whole else np.zeros(len(low))
