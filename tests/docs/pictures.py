"""Draws the pictures of docs/: update graphs of the paper's hospital, by the project's own code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pg_mdistinct.core import update_graph
from pg_mdistinct.core.arrays import Ragged
from pg_mdistinct.core.history import History
from pg_mdistinct.core.model import UpdateModel
from pg_mdistinct.demo import hospital
from pg_mdistinct.picture import UpdateGraphPicture, as_svg
from pg_mdistinct.picture.graph import Edge, Node
from tests.oracle import hospital as paper
from tests.oracle.history import Release

Model = Mapping[str, Mapping[str, float]]

CHANGING: Model = {old: dict.fromkeys(new, 1 / len(new)) for old, new in hospital.UPDATES.items()}
STAYING: Model = {
    "Dyspepsia": {"Dyspepsia": 0.9, "Gastritis": 0.1},
    "Gastritis": {"Gastritis": 0.9, "Dyspepsia": 0.1},
    "Flu": {"Flu": 0.9, "Pneumonia": 0.1},
    "Pneumonia": {"Pneumonia": 0.9, "Flu": 0.1},
}


def pictures() -> dict[str, str]:
    """All pictures, by the names of their files."""
    return {
        "ben-two-diverse.svg": hospital_picture("Ben", paper.FIRST, paper.SECOND_2_DIVERSE),
        "ben-m-distinct.svg": hospital_picture("Ben", paper.FIRST, paper.SECOND_COUNTERFEITED),
        "values-that-stay.svg": as_svg(
            graph(
                "somebody whose value stays",
                [("Flu", "Gastritis"), ("Flu", "Dyspepsia"), ("Flu", "Gastritis")],
                ("Flu", "Flu", "Flu"),
                STAYING,
            )
        ),
    }


def hospital_picture(name: str, *releases: Release) -> str:
    """What the releases of the hospital tell about a patient."""
    own = [next(g for g in release.values() if name in g.members) for release in releases]
    truth = [snapshot[name] for snapshot in paper.SNAPSHOTS]
    return as_svg(graph(name, [group.values for group in own], truth, CHANGING))


def graph(
    record: str, candidates: Sequence[Sequence[str]], truth: Sequence[str], model: Model
) -> UpdateGraphPicture:
    """The update graph of one record that had these candidates, release by release."""
    labels = list(model)
    transition = np.array([[model[old].get(new, 0.0) for new in labels] for old in labels])
    updates = UpdateModel(transition, np.ones(len(labels), dtype=np.bool_), labels)
    count = len(candidates)
    history = History(
        release=np.arange(1, count + 1),
        gid=np.ones(count, dtype=np.int64),
        rows=Ragged.of([[labels.index(value) for value in values] for values in candidates]),
        counterfeits=np.zeros(count, dtype=np.int64),
        record=np.zeros(count, dtype=np.int64),
        group=np.arange(count),
        value=np.array([labels.index(value) for value in truth]),
    )
    known = update_graph.beliefs(history, updates)
    values = [labels[code] for code in known.nodes.items]
    nodes = [
        Node(
            release := int(known.nodes.row_of_item[i]) + 1,
            value,
            float(known.weight[i]),
            float(known.posterior[i]),
            bool(known.alive[i]),
            value == truth[release - 1],
        )
        for i, value in enumerate(values)
    ]
    edges = [
        Edge(
            nodes[before].release,
            values[before],
            nodes[after].release,
            values[after],
            float(probability),
            float(posterior),
            nodes[before].feasible and nodes[after].feasible,
            bool(nodes[before].is_true and nodes[after].is_true),
        )
        for version in range(1, count)
        for found in (update_graph.edges(history, updates, known, version),)
        for before, after, probability, posterior in zip(
            found.before, found.after, found.probability, found.posterior, strict=True
        )
    ]
    return UpdateGraphPicture("hospital", record, tuple(nodes), tuple(edges))
