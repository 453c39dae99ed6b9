"""The principle, rule by rule: what a history of releases must satisfy to be m-Distinct."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

from tests.oracle.adversary import UpdateGraph
from tests.oracle.history import (
    Group,
    History,
    Reach,
    RecordId,
    Release,
    Steps,
    UpdateModel,
    Version,
    versions_by_record,
)

Signature = tuple[frozenset[str], ...]
VARIANTS = ("m-distinct", "m-distinct*", "m-invariance")


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
    exactly the records of each snapshot were published. Every record's update graph is pruned as
    well: the definition itself. Without `explore_graphs` those without a dead end are passed over,
    since pruning begins at dead ends. Under m-invariance no value changes, whatever `model` says.
    """
    if variant not in VARIANTS:
        raise ValueError(f"unknown variant {variant!r}")
    if variant == "m-invariance":
        model = {}
    bounds = [m] * len(history) if isinstance(m, int) else list(m)
    found: list[str] = []
    for number, (release, bound) in enumerate(zip(history, bounds, strict=True), start=1):
        found += _release_violations(number, release, bound)
        if snapshots is not None:
            found += _completeness(number, release, snapshots[number - 1])
    rules = HistoryRules(model, variant)
    after = Steps(model)
    for record, versions in versions_by_record(history).items():
        if variant == "m-invariance":
            found += signature_changes(record, versions)
        judged = rules.judge(record, versions)
        found += judged.violations
        if explore_graphs or judged.dead_end:
            found += _pruned(record, versions, after)
    return found


def signature_changes(record: RecordId, versions: Sequence[Version]) -> Iterator[str]:
    """Xiao and Tao's own words: the same set of values in all releases, and a value that stays."""
    first = versions[0]
    for version in versions[1:]:
        if set(version.group.values) != set(first.group.values):
            yield (
                f"{_where(version, record)}: the signature was {sorted(first.group.values)}, "
                f"and is {sorted(version.group.values)}"
            )
        if version.true_value != first.true_value:
            yield f"{_where(version, record)}: the value was {first.true_value} at first"


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


def has_dead_end(signature: Signature, candidates: Iterable[str]) -> bool:
    """Whether an old value can be none of the new ones, or a new one none of the old."""
    values = frozenset(candidates)
    return any(values.isdisjoint(reach) for reach in signature) or not values <= frozenset().union(
        *signature
    )


class Verdict(NamedTuple):
    """What is to be said of two neighbouring versions, or of all versions of a record."""

    violations: Sequence[str]
    dead_end: bool


class HistoryRules:
    """The rules about one record's versions; each distinct pair of groups is judged once.

    Groups whose values have the same reach sets are the same to those who come from them, so they
    go by one number: millions of versions are then a matter of seconds.
    """

    def __init__(self, model: UpdateModel, variant: str) -> None:
        self._reach = Reach(model)
        self._variant = variant
        self._signatures: list[Signature] = []
        self._by_signature: dict[Signature, int] = {}
        self._number: dict[tuple[tuple[str, ...], int], int] = {}
        self._verdicts: dict[tuple[int, tuple[str, ...]], Verdict] = {}
        self._disjoint: dict[tuple[str, ...], tuple[str, ...]] = {}

    def judge(self, record: RecordId, versions: Sequence[Version]) -> Verdict:
        """What is wrong with the history of one record, and whether a candidate leads nowhere."""
        first = versions[0]
        found: list[str] = []
        dead_end = False
        if self._variant == "m-distinct*":
            for detail in self._overlaps(first.group.values):
                found.append(f"{_where(first, record)}: first group is not m-distinct*: {detail}")
        for old, new in pairwise(versions):
            step = self._step(old, new)
            dead_end = dead_end or step.dead_end
            for detail in step.violations:
                found.append(f"{_where(new, record)}: after release {old.release}: {detail}")
            if not self._possible(old, new):
                found.append(
                    f"{_where(new, record)}: impossible update {old.true_value} -> "
                    f"{new.true_value} in {new.release - old.release} steps"
                )
        return Verdict(found, dead_end)

    def _possible(self, old: Version, new: Version) -> bool:
        if old.true_value is None or new.true_value is None:
            return True
        return new.true_value in self._reach(old.true_value, new.release - old.release)

    def _step(self, old: Version, new: Version) -> Verdict:
        origin = (old.group.values, new.release - old.release)
        number = self._number.get(origin)
        if number is None:
            number = self._number[origin] = self._signature_number(*origin)
        verdict = self._verdicts.get((number, new.group.values))
        if verdict is None:
            verdict = _judge_step(self._signatures[number], new.group.values)
            self._verdicts[number, new.group.values] = verdict
        return verdict

    def _signature_number(self, candidates: tuple[str, ...], gap: int) -> int:
        reaches = [self._reach(value, gap) for value in candidates]
        signature = tuple(sorted(reaches, key=lambda reach: sorted(reach)))
        number = self._by_signature.setdefault(signature, len(self._signatures))
        if number == len(self._signatures):
            self._signatures.append(signature)
        return number

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


def _judge_step(signature: Signature, candidates: tuple[str, ...]) -> Verdict:
    found = []
    if not is_legal_update_instance(candidates, signature):
        found.append(f"no legal update instance: {_shown(signature, candidates)}")
    if not has_one_to_one_update(candidates, signature):
        found.append(f"no one-to-one update: {_shown(signature, candidates)}")
    return Verdict(tuple(found), has_dead_end(signature, candidates))


def _shown(signature: Signature, candidates: tuple[str, ...]) -> str:
    return f"{{{', '.join(candidates)}}} of {[sorted(reach) for reach in signature]}"


def _where(version: Version, record: RecordId) -> str:
    return f"release {version.release}, group {version.gid}, record {record}"


def _release_violations(number: int, release: Release, m: int) -> Iterator[str]:
    members: list[RecordId] = []
    for gid, group in release.items():
        for detail in _group_violations(group, m):
            yield f"release {number}, group {gid}: {detail}"
        members += group.members
    for record, count in Counter(members).items():
        if count > 1:
            yield f"release {number}: record {record} is in {count} groups"


def _group_violations(group: Group, m: int) -> Iterator[str]:
    if not is_m_unique(group.values, m):
        yield f"not {m}-unique: {group.values}"
    if group.counterfeits != len(group.values) - len(group.members):
        yield (
            f"{len(group.values)} rows, {len(group.members)} members "
            f"and {group.counterfeits} counterfeits"
        )
    true_values = [value for value in group.members.values() if value is not None]
    surplus = Counter(true_values) - Counter(group.values) if true_values else Counter()
    for value, count in surplus.items():
        yield f"{count} members too many with value {value}"


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


def _pruned(record: RecordId, versions: Sequence[Version], after: Steps) -> Iterator[str]:
    for version, value in UpdateGraph.of(versions, after).pruned():
        yield f"release {version.release}, record {record}: candidate {value} can be excluded"
