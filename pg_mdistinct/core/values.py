"""Sets of sensitive values, kept as the bits of a Python integer: bit v stands for value v."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pg_mdistinct.core.arrays import BoolArray

ValueSet = int


def value_set(values: Iterable[int]) -> ValueSet:
    """Return the set of the given values."""
    result = 0
    for value in values:
        result |= 1 << int(value)
    return result


def values_of(members: ValueSet) -> Iterator[int]:
    """Go through the values of a set, in ascending order."""
    while members:
        lowest = members & -members
        yield lowest.bit_length() - 1
        members ^= lowest


def rows_as_sets(matrix: BoolArray) -> list[ValueSet]:
    """Return each row of a boolean matrix as a set."""
    return [value_set(row.nonzero()[0]) for row in matrix]


def representatives(
    sets: Sequence[ValueSet], required: int | None = None, preferred: Sequence[int] | None = None
) -> list[int] | None:
    """Choose a different value from each set, one of them being ``required``; None if impossible.

    The required value is tried in every set that holds it; the others are matched to the
    remaining sets by augmenting paths, values in the order of ``preferred`` if that is given.
    """
    if required is None:
        return _match(sets, 0, preferred)
    bit = 1 << required
    for place, members in enumerate(sets):
        if members & bit:
            rest = [*sets[:place], *sets[place + 1 :]]
            chosen = _match(rest, bit, preferred)
            if chosen is not None:
                return [*chosen[:place], required, *chosen[place:]]
    return None


def _match(
    sets: Sequence[ValueSet], taken: ValueSet, preferred: Sequence[int] | None
) -> list[int] | None:
    """Match every set with a value of its own outside ``taken``."""
    owner: dict[int, int] = {}

    def claim(place: int, tried: set[int]) -> bool:
        fitting = sets[place] & ~taken
        ordered = values_of(fitting) if preferred is None else preferred
        for value in ordered:
            if fitting >> value & 1 and value not in tried:
                tried.add(value)
                if value not in owner or claim(owner[value], tried):
                    owner[value] = place
                    return True
        return False

    for place in range(len(sets)):
        if not claim(place, set()):
            return None
    chosen = {place: value for value, place in owner.items()}
    return [chosen[place] for place in range(len(sets))]


def stay_disjoint(sets: Iterable[ValueSet], reach: Sequence[ValueSet]) -> bool:
    """Tell whether any values chosen from these sets, one from each, have disjoint reach sets.

    m-distinct* asks it of every group in which a record appears for the first time.
    """
    covered = 0
    for members in sets:
        closure = 0
        for value in values_of(members):
            closure |= reach[value]
        if closure & covered:
            return False
        covered |= closure
    return True


def disjoint_company(
    reach: Sequence[ValueSet], value: int, size: int, preferred: Sequence[int]
) -> list[int] | None:
    """Find ``size`` values, ``value`` first, whose reach sets do not overlap; None if impossible.

    Values are tried in the order of ``preferred``; the search goes back where a choice leads
    nowhere, so it finds a company whenever there is one. It does not go where the smallest reach
    sets that are left are too large for what is left of the domain.
    """
    domain = 0
    for other in preferred:
        domain |= reach[other]

    def extend(chosen: list[int], covered: ValueSet, rest: list[int]) -> list[int] | None:
        if len(chosen) == size:
            return chosen
        fitting = [other for other in rest if not reach[other] & covered]
        smallest = sorted(reach[other].bit_count() for other in fitting)[: size - len(chosen)]
        if sum(smallest) > (domain & ~covered).bit_count():
            return None
        while len(chosen) + len(fitting) >= size:
            first = fitting.pop(0)
            found = extend([*chosen, first], covered | reach[first], fitting)
            if found is not None:
                return found
        return None

    return extend([value], reach[value], [other for other in preferred if other != value])
