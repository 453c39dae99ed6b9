"""The principle, rule by rule: what a history of releases must satisfy to be m-Distinct."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise

from tests.oracle.adversary import UpdateGraph
from tests.oracle.history import (
    History,
    Reach,
    RecordId,
    Release,
    UpdateModel,
    Version,
    versions_by_record,
)

Signature = tuple[frozenset[str], ...]
VARIANTS = ("m-distinct", "m-distinct*")


def violations(
    history: History,
    model: UpdateModel,
    m: int | Sequence[int],
    variant: str,
    *,
    snapshots: Sequence[Mapping[RecordId, str]] | None = None,
    explore_graphs: bool = True,
) -> list[str]:
    """Everything in which `history` falls short of the principle; an empty list: it holds.

    `m` is one number or one for each release. `snapshots` (record -> true value) add that
    exactly the records of each snapshot were published. `explore_graphs` prunes every record's
    update graph as well: the definition itself, which the rules for neighbouring versions imply.
    """
    if variant not in VARIANTS:
        raise ValueError(f"unknown variant {variant!r}")
    bounds = [m] * len(history) if isinstance(m, int) else list(m)
    found: list[str] = []
    for number, (release, bound) in enumerate(zip(history, bounds, strict=True), start=1):
        found += _release_violations(number, release, bound)
        if snapshots is not None:
            found += _completeness(number, release, snapshots[number - 1])
    rules = HistoryRules(model, variant)
    for record, versions in versions_by_record(history).items():
        found += rules.record_violations(record, versions)
        if explore_graphs:
            found += _pruned(record, versions, model)
    return found


def is_m_unique(values: Sequence[str], m: int) -> bool:
    """At least m rows, all with distinct sensitive values."""
    return len(values) >= m and len(set(values)) == len(values)


def is_legal_update_instance(candidates: Iterable[str], signature: Signature) -> bool:
    """The paper's definition: as many values as reach sets, and each covers the other."""
    values = set(candidates)
    return (
        len(values) == len(signature)
        and all(any(value in reach for reach in signature) for value in values)
        and all(any(value in reach for value in values) for reach in signature)
    )


def has_one_to_one_update(candidates: Iterable[str], signature: Signature) -> bool:
    """Whether each new value can be given a reach set of its own that contains it."""
    values = sorted(set(candidates))
    if len(values) != len(signature):
        return False
    taken: dict[int, str] = {}

    def place(value: str, tried: set[int]) -> bool:
        for entry, reach in enumerate(signature):
            if value in reach and entry not in tried:
                tried.add(entry)
                if entry not in taken or place(taken[entry], tried):
                    taken[entry] = value
                    return True
        return False

    return all(place(value, set()) for value in values)


class HistoryRules:
    """The rules about one record's versions; each distinct pair of groups is judged once."""

    def __init__(self, model: UpdateModel, variant: str) -> None:
        self._reach = Reach(model)
        self._variant = variant
        self._signatures: dict[tuple[tuple[str, ...], int], Signature] = {}
        self._verdicts: dict[tuple[Signature, tuple[str, ...]], tuple[str, ...]] = {}
        self._disjoint: dict[tuple[str, ...], tuple[str, ...]] = {}

    def record_violations(self, record: RecordId, versions: Sequence[Version]) -> Iterator[str]:
        """What is wrong with the history of one record."""
        first = versions[0]
        if self._variant == "m-distinct*":
            for detail in self._overlaps(first.group.values):
                yield f"{_where(first, record)}: first group is not m-distinct*: {detail}"
        for old, new in pairwise(versions):
            gap = new.release - old.release
            for detail in self._step(old.group.values, gap, new.group.values):
                yield f"{_where(new, record)}: after release {old.release}: {detail}"
            if not self._possible(old.true_value, gap, new.true_value):
                yield (
                    f"{_where(new, record)}: impossible update "
                    f"{old.true_value} -> {new.true_value} in {gap} steps"
                )

    def _possible(self, old: str | None, gap: int, new: str | None) -> bool:
        return old is None or new is None or new in self._reach(old, gap)

    def _signature(self, candidates: tuple[str, ...], gap: int) -> Signature:
        known = self._signatures.get((candidates, gap))
        if known is None:
            reaches = [self._reach(value, gap) for value in candidates]
            known = tuple(sorted(reaches, key=lambda reach: sorted(reach)))
            self._signatures[candidates, gap] = known
        return known

    def _step(self, old: tuple[str, ...], gap: int, new: tuple[str, ...]) -> tuple[str, ...]:
        key = (self._signature(old, gap), new)
        known = self._verdicts.get(key)
        if known is None:
            known = tuple(_judge_step(*key))
            self._verdicts[key] = known
        return known

    def _overlaps(self, candidates: tuple[str, ...]) -> tuple[str, ...]:
        known = self._disjoint.get(candidates)
        if known is None:
            known = tuple(
                f"reach({a}) and reach({b}) overlap"
                for a, b in combinations(candidates, 2)
                if self._reach(a) & self._reach(b)
            )
            self._disjoint[candidates] = known
        return known


def _judge_step(signature: Signature, candidates: tuple[str, ...]) -> Iterator[str]:
    if not is_legal_update_instance(candidates, signature):
        yield f"no legal update instance: {_shown(signature, candidates)}"
    if not has_one_to_one_update(candidates, signature):
        yield f"no one-to-one update: {_shown(signature, candidates)}"


def _shown(signature: Signature, candidates: tuple[str, ...]) -> str:
    return f"{{{', '.join(candidates)}}} of {[sorted(reach) for reach in signature]}"


def _where(version: Version, record: RecordId) -> str:
    return f"release {version.release}, group {version.gid}, record {record}"


def _release_violations(number: int, release: Release, m: int) -> Iterator[str]:
    seen: Counter[RecordId] = Counter()
    for gid, group in release.items():
        where = f"release {number}, group {gid}"
        if not is_m_unique(group.values, m):
            yield f"{where}: not {m}-unique: {group.values}"
        if group.counterfeits != len(group.values) - len(group.members):
            yield (
                f"{where}: {len(group.values)} rows, {len(group.members)} members "
                f"and {group.counterfeits} counterfeits"
            )
        true_values = Counter(value for value in group.members.values() if value is not None)
        for value, count in (true_values - Counter(group.values)).items():
            yield f"{where}: {count} members too many with value {value}"
        seen.update(group.members.keys())
    for record, count in seen.items():
        if count > 1:
            yield f"release {number}: record {record} is in {count} groups"


def _completeness(number: int, release: Release, snapshot: Mapping[RecordId, str]) -> Iterator[str]:
    published = {
        record: value for group in release.values() for record, value in group.members.items()
    }
    for record in sorted(snapshot.keys() - published.keys()):
        yield f"release {number}: record {record} is missing"
    for record in sorted(published.keys() - snapshot.keys()):
        yield f"release {number}: record {record} is not in the snapshot"
    for record in published.keys() & snapshot.keys():
        if published[record] not in (None, snapshot[record]):
            yield f"release {number}: record {record} has another value than in the snapshot"


def _pruned(record: RecordId, versions: Sequence[Version], model: UpdateModel) -> Iterator[str]:
    for version, value in UpdateGraph.of(versions, model).pruned():
        yield f"release {version.release}, record {record}: candidate {value} can be excluded"
