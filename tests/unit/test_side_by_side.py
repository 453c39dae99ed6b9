"""Two threads: all parts done, none lost on the way out, and no signal for the helper."""

from __future__ import annotations

import signal
import threading
import time

import numpy as np
import pytest

from pg_mdistinct.core import side_by_side as module
from pg_mdistinct.core.model import M_DISTINCT
from pg_mdistinct.core.publication import plan_release
from pg_mdistinct.core.side_by_side import Breathe, side_by_side
from pg_mdistinct.experiments.publisher import Publisher
from pg_mdistinct.experiments.records import workload_model
from pg_mdistinct.workload import Workload


@pytest.fixture(autouse=True)
def always_with_a_helper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_WORK", 0)
    monkeypatch.setattr(module, "BREATHS_APART", 0.01)


def in_helper() -> bool:
    return threading.current_thread() is not threading.main_thread()


def helpers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if isinstance(thread, module._Helper)]


def test_results_come_in_the_order_of_the_parts() -> None:
    doubled = side_by_side(lambda part, _: 2 * part, range(50), list(range(50)))
    assert doubled == [2 * part for part in range(50)]
    assert side_by_side(lambda part, _: part, [], []) == []
    assert not helpers()


def test_both_threads_take_parts_the_largest_first() -> None:
    meeting = threading.Barrier(2, timeout=60)
    began: list[int] = []

    def meet(part: int, _: Breathe) -> bool:
        began.append(part)
        meeting.wait()
        return in_helper()

    assert sorted(side_by_side(meet, [0, 1, 2, 3], [1, 5, 3, 4])) == [False, False, True, True]
    assert set(began[:2]) == {1, 3}


def test_the_helper_gets_no_signals_and_the_first_thread_keeps_its_own() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    meeting = threading.Barrier(2, timeout=60)

    def blocked(part: int, _: Breathe) -> tuple[bool, set[int]]:
        meeting.wait()
        return in_helper(), set(signal.pthread_sigmask(signal.SIG_BLOCK, []))

    masks = dict(side_by_side(blocked, [0, 1], [1, 1]))
    assert masks[False] == before
    assert masks[True] >= {signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGALRM}
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_the_helper_rests_while_the_first_thread_breathes() -> None:
    steps = 0
    seen: list[tuple[int, int]] = []

    def step(part: int, breathe: Breathe) -> None:
        nonlocal steps
        for _ in range(100):
            if in_helper():
                steps += 1
            time.sleep(0.001)
            breathe()

    def progress(share: float) -> None:
        before = steps
        time.sleep(0.02)
        seen.append((before, steps))

    side_by_side(step, range(4), [1] * 4, progress)
    assert steps > 0
    assert len(seen) > 3
    assert all(before == after for before, after in seen)


def test_progress_comes_from_the_first_thread_and_never_falls() -> None:
    shares: list[float] = []

    def progress(share: float) -> None:
        assert not in_helper()
        shares.append(share)

    side_by_side(lambda part, _: time.sleep(0.005), range(20), [1] * 20, progress)
    assert shares == sorted(shares)
    assert 0 < len(shares) <= 21
    assert all(0 <= share <= 1 for share in shares)


def test_what_the_helper_fails_with_is_raised() -> None:
    meeting = threading.Barrier(2, timeout=60)

    def fail(part: int, _: Breathe) -> None:
        meeting.wait()
        if in_helper():
            raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        side_by_side(fail, [0, 1], [1, 1])
    assert not helpers()


@pytest.mark.parametrize("by_progress", [False, True])
def test_whoever_ends_the_work_waits_for_the_helper(by_progress: bool) -> None:
    helper_began = threading.Event()
    parts = []

    def work(part: int, breathe: Breathe) -> None:
        parts.append(part)
        if not in_helper():
            helper_began.wait(60)
            if not by_progress:
                raise KeyError("cancelled")
        else:
            helper_began.set()
        for _ in range(1_000):
            time.sleep(0.001)
            breathe()

    def progress(share: float) -> None:
        if by_progress:
            raise KeyError("cancelled")

    with pytest.raises(KeyError, match="cancelled"):
        side_by_side(work, range(100), [1] * 100, progress)
    assert not helpers()
    assert len(parts) == 2


def test_where_no_thread_can_be_had_one_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    told: list[float] = []

    def work(part: int, breathe: Breathe) -> bool:
        time.sleep(0.02)
        breathe()
        return in_helper()

    assert side_by_side(work, range(3), [1] * 3, told.append) == [False] * 3
    assert told


def test_a_plan_is_the_same_with_and_without_a_helper(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = Workload(initial=3_000, insertions=600, deletions=300, updates=700)
    model = workload_model(workload)
    publisher = Publisher(model, 4, rng=np.random.default_rng(0))
    first, second = workload.releases(2)
    publisher.publish(first)
    snapshot = publisher.snapshot(second)
    plans = []
    for least in (0, 10**9):
        monkeypatch.setattr(module, "LEAST_WORK", least)
        plans.append(plan_release(snapshot, model, 4, M_DISTINCT, np.random.default_rng(1)))
    together, alone = plans
    assert np.array_equal(together.group, alone.group)
    assert np.array_equal(together.candidates.items, alone.candidates.items)
    assert together.ncp == alone.ncp
