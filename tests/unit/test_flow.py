"""Maximum flow, against the smallest of all cuts."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pg_mdistinct.core.flow import Network

SOURCE, SINK = 0, 1


class Arc(NamedTuple):
    tail: int
    head: int
    capacity: int


@st.composite
def networks(draw: st.DrawFn) -> tuple[int, list[Arc]]:
    """Up to seven nodes, arcs of all kinds: parallel ones, cycles, loops, empty ones."""
    nodes = draw(st.integers(2, 7))
    node = st.integers(0, nodes - 1)
    return nodes, draw(st.lists(st.builds(Arc, node, node, st.integers(0, 6)), max_size=16))


def smallest_cut(nodes: int, arcs: list[Arc]) -> int:
    """Try every way to tell the source's side from the sink's."""
    return min(
        crossing((True, False, *rest), arcs) for rest in product((True, False), repeat=nodes - 2)
    )


def crossing(on_source_side: tuple[bool, ...], arcs: list[Arc]) -> int:
    return sum(a.capacity for a in arcs if on_source_side[a.tail] and not on_source_side[a.head])


def network_of(nodes: int, arcs: list[Arc]) -> Network:
    network = Network(nodes)
    network.add(*np.array(arcs, dtype=np.int64).reshape(-1, 3).T)
    return network


def assert_is_flow(network: Network, nodes: int, arcs: list[Arc], value: int) -> None:
    """What flows fits the arcs, and all of it goes from the source to the sink."""
    flows = network.flow(np.arange(len(arcs)))
    balance = np.zeros(nodes, dtype=np.int64)
    for arc, flow in zip(arcs, flows, strict=True):
        assert 0 <= flow <= arc.capacity
        balance[arc.tail] -= flow
        balance[arc.head] += flow
    assert balance[SINK] == -balance[SOURCE] == value
    assert not balance[2:].any()


@settings(max_examples=300)
@given(networks())
def test_the_largest_flow_fills_the_smallest_cut(network: tuple[int, list[Arc]]) -> None:
    nodes, arcs = network
    solved = network_of(nodes, arcs)
    value = solved.augment(SOURCE, SINK)
    assert value == smallest_cut(nodes, arcs)
    assert_is_flow(solved, nodes, arcs, value)
    assert solved.augment(SOURCE, SINK) == 0


@settings(max_examples=200)
@given(networks())
def test_what_can_be_reached_is_one_side_of_a_smallest_cut(
    network: tuple[int, list[Arc]],
) -> None:
    nodes, arcs = network
    solved = network_of(nodes, arcs)
    value = solved.augment(SOURCE, SINK)
    side = tuple(map(bool, solved.reachable(SOURCE)))
    assert side[SOURCE]
    assert not side[SINK]
    assert crossing(side, arcs) == value


@settings(max_examples=200)
@given(networks(), st.data())
def test_wider_arcs_carry_more_on_top_of_what_flows(
    network: tuple[int, list[Arc]], data: st.DataObject
) -> None:
    nodes, arcs = network
    solved = network_of(nodes, arcs)
    first = solved.augment(SOURCE, SINK)
    size = len(arcs)
    extra = data.draw(st.lists(st.integers(0, 5), min_size=size, max_size=size))
    solved.widen(np.arange(size), np.array(extra, dtype=np.int64))
    wider = [arc._replace(capacity=arc.capacity + e) for arc, e in zip(arcs, extra, strict=True)]
    total = first + solved.augment(SOURCE, SINK)
    assert total == smallest_cut(nodes, wider)
    assert_is_flow(solved, nodes, wider, total)


def test_arcs_are_numbered_through() -> None:
    network = Network(3)
    ones = np.ones(1, dtype=np.int64)
    first = network.add(0 * ones, 2 * ones, 3 * ones)
    second = network.add(2 * ones, 1 * ones, 2 * ones)
    assert (first.tolist(), second.tolist()) == ([0], [1])
    assert network.augment(SOURCE, SINK) == 2
    assert network.flow(first).tolist() == network.flow(second).tolist() == [2]
