"""What the adversary knows: of whom, after the latest release, and under which update model."""

from __future__ import annotations

import numpy as np

from pg_mdistinct.core.knowledge import recall
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.core.texts import Texts
from pg_mdistinct.server import hindsight, latest
from pg_mdistinct.server.catalog import Dataset
from pg_mdistinct.server.history import read_history
from pg_mdistinct.server.latest import Latest
from pg_mdistinct.server.plpython import Plpy, run
from pg_mdistinct.server.progress import Progress
from pg_mdistinct.server.relations import relations_of


def latest_release(plpy: Plpy, dataset: Dataset, model: UpdateModel) -> Latest:
    """Return the latest release with what is known of its records under this model."""
    if not latest.is_current(plpy, dataset, model):
        _learn_again(plpy, dataset, model)
    return latest.read(plpy, dataset)


def largest_risk_of_absent(plpy: Plpy, dataset: Dataset, returned: list[str]) -> float:
    """Return the largest risk of the records that are absent, but for those that return."""
    rows = run(
        plpy,
        # From the top of the index: those who left become more with every release.
        f"SELECT a.risk FROM {relations_of(plpy, dataset.name).absent} AS a"
        " WHERE a.record_id <> ALL ($1) ORDER BY a.risk DESC LIMIT 1",
        ["text[]"],
        [returned],
    )
    return float(rows[0]["risk"]) if rows.nrows() else 0.0


def _learn_again(plpy: Plpy, dataset: Dataset, model: UpdateModel) -> None:
    """Go through the whole history under a model that has changed."""
    stored = read_history(plpy, dataset, model.labels)
    history = stored.history
    hindsight.check(dataset, history, model)
    with Progress(plpy) as progress:
        learned = recall(history, model, progress)
    last = np.flatnonzero(np.append(history.is_first[1:], True)[: len(history.record)])
    in_latest = history.version_release[last] == dataset.last_release
    present = last[in_latest]
    present = present[np.argsort(stored.place[present])]
    latest.store(
        plpy,
        dataset,
        model,
        Latest(
            Texts.of([stored.record_id(version) for version in present.tolist()]),
            history.gid[history.group[present]] - 1,
            history.value[present],
            history.rows.take(np.flatnonzero(history.release == dataset.last_release)),
            learned.known.take(history.record[present]),
        ),
    )
    away = history.record[last[~in_latest]]
    known = learned.known.take(away)
    packed = latest.packed_one_by_one(known.states)
    run(
        plpy,
        f"UPDATE {relations_of(plpy, dataset.name).absent} AS a"
        " SET knowledge = t.knowledge, risk = t.risk"
        " FROM unnest($1, $2, $3) AS t (record_id, knowledge, risk)"
        " WHERE t.record_id = a.record_id",
        ["text[]", "bytea[]", "float8[]"],
        [
            [stored.record_ids[record] for record in away.tolist()],
            [packed[state] for state in known.state.tolist()],
            learned.risk[away].tolist(),
        ],
    )
