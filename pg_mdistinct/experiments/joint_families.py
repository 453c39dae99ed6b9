"""What the joint adversary learns under each family of signatures, on small random histories.

``python -m pg_mdistinct.experiments.joint_families`` prints the table of docs/joint-adversary.md.

The model has two classes of four values; within a class every update is equally likely. A group is
then described by how many of its values are of either class, and a family says which groups a
record may go to after the first one. All families publish the same snapshots.

Under this model a record never leaves its class, and all worlds that agree on everybody's class
weigh the same. So they need not be gone through one by one, as `core.joint` does for any
model: counting them for each way to give the records their classes has the same result.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from math import perm

import click
import numpy as np

from pg_mdistinct.core.arrays import FloatArray, Ragged
from pg_mdistinct.core.history import History
from pg_mdistinct.core.joint import JointRisks
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.update_graph import Risks, risks
from pg_mdistinct.experiments.publisher import Publisher
from pg_mdistinct.experiments.records import Recorder
from pg_mdistinct.workload import SNAPSHOT

CLASSES = 2
CLASS_SIZE = 4
VALUES = CLASSES * CLASS_SIZE
MOST_MEMBERS = 8
TRIES = 200
_RAISED = 1e-9

Values = dict[int, int]
"""Record -> value."""

Composition = tuple[int, int]
"""How many of a group's values are of the first class, and how many of the second."""

Signature = tuple[int, ...]
Family = Callable[[Composition], Signature | None]
"""The signature of a group with some composition; None where the family has no such groups."""

Group = tuple[list[int], list[int]]
"""The members of a group, and all its values."""


def exact_multiset(composition: Composition) -> Signature | None:
    """M: as many values of each class as in the record's first group."""
    return composition


def coverage(composition: Composition) -> Signature | None:
    """S: the same classes as in the record's first group, in any numbers."""
    return tuple(int(count > 0) for count in composition)


def equal_multiplicities(composition: Composition) -> Signature | None:
    """E: the exact multiset too, but only those in which all classes are equally frequent."""
    return composition if len(set(composition) - {0}) == 1 else None


FAMILIES: dict[str, Family] = {"M": exact_multiset, "S": coverage, "E": equal_multiplicities}
CORE = "core"


@dataclass(frozen=True)
class Attacked:
    """A history, and what either adversary makes of it."""

    history: History
    alone: Risks
    joint: JointRisks


@dataclass(frozen=True)
class Findings:
    """The risks of all versions of many histories, and shares of versions.

    ``pruned`` lost a candidate to the per-record attack, ``ruled_out`` one to the joint attack
    only, and of the ``disclosed`` a single one is left to that.
    """

    m: int
    family: str
    alone: FloatArray
    joint: FloatArray
    pruned: float
    ruled_out: float
    disclosed: float
    counterfeits: float

    @property
    def raised(self) -> float:
        """Return the share of versions whose risk the joint attack lifts."""
        return float((self.joint > self.alone + _RAISED).mean())


def model() -> UpdateModel:
    """Return the partition model: a value becomes any of its class, all equally likely."""
    same_class = np.kron(np.eye(CLASSES), np.ones((CLASS_SIZE, CLASS_SIZE)))
    known = np.ones(VALUES, dtype=np.bool_)
    return UpdateModel(same_class / CLASS_SIZE, known, list("abcdefgh"))


def snapshots(rng: np.random.Generator, records: int, releases: int) -> Iterator[Values]:
    """Go through random microdata: values change within their class, records come and go."""
    value = rng.integers(VALUES, size=records)
    yield dict(enumerate(value.tolist()))
    for _ in range(releases - 1):
        value = value // CLASS_SIZE * CLASS_SIZE + rng.integers(CLASS_SIZE, size=records)
        present = rng.random(records) < 0.8
        yield {i: int(value[i]) for i in np.flatnonzero(present).tolist()}


def publish_by_core(microdata: Iterable[Values], m: int, rng: np.random.Generator) -> History:
    """Publish as the project does: E, and M for what does not fit it."""
    publisher = Publisher(model(), m, rng=rng)
    for snapshot in microdata:
        people = np.zeros(len(snapshot), dtype=SNAPSHOT)
        people["id"] = list(snapshot)
        people["occupation"] = list(snapshot.values())
        people["age"] = rng.integers(16, 100, size=len(snapshot))
        publisher.publish(people)
    return publisher.history()


def publish(
    microdata: Iterable[Values], m: int, family: Family, rng: np.random.Generator
) -> History:
    """Group every snapshot as the family says; counterfeits fill up what is missing."""
    signature: dict[int, Signature] = {}
    recorder = Recorder()
    for snapshot in microdata:
        groups = []
        for wanted, members in _buckets(snapshot, signature).items():
            groups += _deal(members, wanted, m, family, rng)
        for group, values in groups:
            found = family(_composition(values))
            assert found is not None, "groups are completed to what the family has"
            signature.update(dict.fromkeys(group, found))
        _record(recorder, snapshot, groups)
    return recorder.history()


def _buckets(
    snapshot: Values, signature: Mapping[int, Signature]
) -> dict[Signature | None, Values]:
    """Sort records by the signature that they have; None for those who are new."""
    buckets: dict[Signature | None, Values] = defaultdict(dict)
    for record, value in snapshot.items():
        buckets[signature.get(record)][record] = value
    return buckets


def _deal(
    members: Values, wanted: Signature | None, m: int, family: Family, rng: np.random.Generator
) -> list[Group]:
    """Form as few groups as random tries allow."""
    for size in count(-(-len(members) // m)):
        for _ in range(TRIES):
            groups = _try(members, size, wanted, m, family, rng)
            if groups is not None:
                return groups
    raise AssertionError("groups of one record can always be completed")


def _try(
    members: Values,
    size: int,
    wanted: Signature | None,
    m: int,
    family: Family,
    rng: np.random.Generator,
) -> list[Group] | None:
    """Deal the records to groups at random; None if a group cannot be completed."""
    dealt: list[list[int]] = [[] for _ in range(size)]
    for place, record in enumerate(rng.permutation(list(members)).tolist()):
        dealt[place % size].append(record)
    groups = []
    for group in dealt:
        values = _completed([members[record] for record in group], wanted, m, family, rng)
        if values is None:
            return None
        groups.append((group, values))
    return groups


def _completed(
    values: list[int],
    wanted: Signature | None,
    m: int,
    family: Family,
    rng: np.random.Generator,
) -> list[int] | None:
    """Add counterfeits until there are m different values with the right signature."""
    have = _composition(values)
    targets = [
        (a, m - a)
        for a in range(have[0], m - have[1] + 1)
        if max(a, m - a) <= CLASS_SIZE
        and family((a, m - a)) is not None
        and wanted in (None, family((a, m - a)))
    ]
    if len(set(values)) < len(values) or not targets:
        return None
    target = targets[rng.integers(len(targets))]
    full = list(values)
    for number, (need, there) in enumerate(zip(target, have, strict=True)):
        of_class = range(number * CLASS_SIZE, (number + 1) * CLASS_SIZE)
        free = [value for value in of_class if value not in values]
        full += rng.permutation(free)[: need - there].tolist()
    return full


def _composition(values: list[int]) -> Composition:
    first = sum(value < CLASS_SIZE for value in values)
    return first, len(values) - first


def _record(recorder: Recorder, snapshot: Values, groups: list[Group]) -> None:
    members = [(record, place) for place, (group, _) in enumerate(groups) for record in group]
    record, group = np.array(members, dtype=np.int64).reshape(-1, 2).T
    recorder.add(
        record=record,
        group=group,
        value=np.array([snapshot[r] for r in record.tolist()], dtype=np.int64),
        rows=Ragged.of([values for _, values in groups]),
        counterfeits=np.array([len(v) - len(g) for g, v in groups], dtype=np.int64),
    )


@dataclass(frozen=True)
class Scale:
    """How large histories are: the fewest and most records and releases."""

    records: tuple[int, int]
    releases: tuple[int, int]

    def __str__(self) -> str:
        records, releases = (
            f"{low}–{high}" if low < high else str(low)
            for low, high in (self.records, self.releases)
        )
        return f"{records} records, {releases} releases"


SMALL = Scale((6, 8), (3, 5))
LONGER = Scale((12, 12), (10, 10))


def random_history(seed: int, scale: Scale, m: int, name: str) -> History:
    """Return the history of a seed; its microdata are the same for all m and families."""
    rng = np.random.default_rng(seed)
    records, releases = (int(rng.integers(a, b + 1)) for a, b in (scale.records, scale.releases))
    microdata = list(snapshots(rng, records, releases))
    if name == CORE:
        return publish_by_core(microdata, m, rng)
    return publish(microdata, m, FAMILIES[name], rng)


def count_worlds(history: History) -> JointRisks:
    """Attack jointly: the result of ``joint_risks``, for this model and much faster."""
    records, number = np.unique(history.record, return_inverse=True)
    second = (np.arange(2 ** len(records))[:, None] >> np.arange(len(records))) & 1
    worlds = np.ones(len(second))
    compositions = [_composition(history.rows.row(g).tolist()) for g in range(len(history.rows))]
    for group, (first_values, second_values) in enumerate(compositions):
        members = number[history.group == group]
        of_second = second[:, members].sum(axis=1)
        worlds *= _DEALS[first_values, len(members) - of_second]
        worlds *= _DEALS[second_values, of_second]
    in_second = worlds @ second / worlds.sum()
    chance = np.stack([1 - in_second, in_second], axis=1)[number]
    possible = np.stack([worlds @ (1 - second), worlds @ second], axis=1)[number] > 0
    values = np.array(compositions)[history.group]
    true_class = (history.value >= CLASS_SIZE).astype(np.int64)
    version = np.arange(len(number))
    risk = chance[version, true_class] / values[version, true_class]
    return JointRisks(risk, (values * possible).sum(axis=1))


# Ways to deal some of n values to k members, in order; none if there are too few values.
_DEALS = np.array(
    [[float(perm(n, k)) for k in range(MOST_MEMBERS + 1)] for n in range(MOST_MEMBERS + 1)]
)


def findings(scale: Scale, m: int, histories: int, first_seed: int) -> list[Findings]:
    """Attack the same microdata, published under every family and by the core itself."""
    known = model()
    found = []
    for name in (*FAMILIES, CORE):
        results = []
        for seed in range(first_seed, first_seed + histories):
            history = random_history(seed, scale, m, name)
            results.append(Attacked(history, risks(history, known), count_worlds(history)))
        found.append(_summary(m, name, results))
    return found


def _summary(m: int, family: str, results: list[Attacked]) -> Findings:
    alone = np.concatenate([result.alone.candidates for result in results])
    joint = np.concatenate([result.joint.candidates for result in results])
    return Findings(
        m=m,
        family=family,
        alone=np.concatenate([result.alone.risk for result in results]),
        joint=np.concatenate([result.joint.risk for result in results]),
        pruned=float((alone < m).mean()),
        ruled_out=float((joint < alone).mean()),
        disclosed=float((joint == 1).mean()),
        counterfeits=float(
            np.concatenate([result.history.counterfeits for result in results]).mean()
        ),
    )


HEADING = (
    "| m | family | versions | counterfeits a group | risk alone: mean / max "
    "| risk jointly: mean / max | pruned alone | ruled out jointly | risk raised | disclosed |"
)


def table_row(found: Findings) -> str:
    """Return one line of the table."""
    cells = (
        str(found.m),
        found.family,
        str(len(found.alone)),
        f"{found.counterfeits:.2f}",
        f"{found.alone.mean():.3f} / {found.alone.max():.3f}",
        f"{found.joint.mean():.3f} / {found.joint.max():.3f}",
        f"{found.pruned:.1%}",
        f"{found.ruled_out:.1%}",
        f"{found.raised:.1%}",
        f"{found.disclosed:.1%}",
    )
    return f"| {' | '.join(cells)} |"


@click.command()
@click.option("--histories", default=500, show_default=True, help="Histories for each line.")
@click.option("--seed", default=1, show_default=True, help="The first one's seed.")
def main(histories: int, seed: int) -> None:
    """Print what the joint adversary finds for each family of signatures."""
    for scale in (SMALL, LONGER):
        click.echo(f"\n{scale}:\n\n{HEADING}\n{'|---' * (HEADING.count('|') - 1)}|")
        for m in (2, 4):
            for line in findings(scale, m, histories, seed):
                click.echo(table_row(line))


if __name__ == "__main__":
    main()
