"""Backends that are killed, and a server that stops, in the middle of publications."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from tests.faults.victim import (
    Victim,
    begin_publication,
    change,
    ended_well,
    expect_principle,
    expect_whole,
    last_release,
    make_ward,
    moments,
    publish,
    seconds_to_publish,
    wait_until_cut_off,
)

pytestmark = [pytest.mark.embedded, pytest.mark.slow]

RECORDS = 150
KILLS, KILLS_A_DATASET = 50, 10
STOPS = 6


def prepare(victim: Victim, name: str) -> float:
    """Make a dataset, and return how long a publication takes."""
    with victim.connect() as db:
        make_ward(db, name, RECORDS)
        publish(db, name)
        return seconds_to_publish(db, name)


def strike(
    victim: Victim, name: str, seed: int, moment: float, strike: Callable[[int], None]
) -> bool:
    """Publish once in peace and once until struck; tell whether the second came to its end.

    The first needs no repair of what the strike before has left.
    """
    with victim.connect() as db, victim.connect() as witness:
        expect_whole(db, name)
        change(db, name, seed)
        before = publish(db, name)
        begin_publication(db, name)
        time.sleep(moment)
        strike(db.info.backend_pid)
        told = ended_well(db)
        wait_until_cut_off(witness)
    with victim.connect() as db:
        now = last_release(db, name)
    # What the client was told is there; what he was not told may be, but never half of it.
    assert now == before + 1 if told else now in (before, before + 1)
    return now > before


def test_a_killed_backend(victim: Victim) -> None:
    survived = 0
    for number in range(KILLS):
        name = f"killed{number // KILLS_A_DATASET}"
        if number % KILLS_A_DATASET == 0:
            upcoming = moments(number, KILLS_A_DATASET, prepare(victim, name))
        moment = next(upcoming)
        survived += strike(victim, name, number, moment, lambda pid: os.kill(pid, signal.SIGKILL))
    # Otherwise the moments were badly chosen, and nothing was tested.
    assert survived < KILLS / 2
    with victim.connect() as db:
        expect_whole(db, f"killed{(KILLS - 1) // KILLS_A_DATASET}")
        expect_principle(db)


def test_a_server_that_stops_at_once(victim: Victim) -> None:
    upcoming = moments(1, STOPS, prepare(victim, "stopped"))

    def stop(pid: int) -> None:
        victim.stop_at_once()
        victim.start_again()

    survived = sum(
        strike(victim, "stopped", number, moment, stop) for number, moment in enumerate(upcoming)
    )
    assert survived < STOPS
    with victim.connect() as db:
        publish(db, "stopped")
        expect_whole(db, "stopped")
        expect_principle(db)
