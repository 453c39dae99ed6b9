"""Work in two threads, for compiled code that lets go of Python's lock.

The process may be one of PostgreSQL's, which know nothing of threads. So the second thread, the
helper, gets no signals: all of them are the first one's. It touches nothing but arrays, and it is
over before anybody goes on. And whenever the first thread breathes, which is a chance for the
server to end the work or the whole process, the helper rests.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np

Part = TypeVar("Part")
Result = TypeVar("Result")
Breathe = Callable[[], None]

LEAST_WORK = 4_000
"""In records or groups: less is done before a helper has begun."""

BREATHS_APART = 0.2
"""Seconds: while the first thread breathes, the second one waits."""


def side_by_side(
    work: Callable[[Part, Breathe], Result],
    parts: Sequence[Part],
    sizes: Sequence[int],
    progress: Callable[[float], None] = lambda share: None,
) -> list[Result]:
    """Return what the work makes of each part; large ones are begun first.

    The work is given a part, and a function to call every now and then that may raise to end it.
    ``progress``, which is told the share that is done, is called by the first thread only.
    """
    largest_first = np.argsort(-np.asarray(sizes), kind="stable").tolist()
    waiting = iter(largest_first)
    results: dict[int, Result] = {}

    def take_parts(breathe: Breathe) -> None:
        # Both threads take from the same iterator.
        for number in waiting:
            results[number] = work(parts[number], breathe)
            breathe()

    def tell() -> None:
        progress(sum(sizes[number] for number in list(results)) / max(sum(sizes), 1))

    if len(parts) < 2 or sum(sizes) < LEAST_WORK:
        take_parts(tell)
    else:
        _with_helper(take_parts, tell)
    return [results[number] for number in range(len(parts))]


def _with_helper(take_parts: Callable[[Breathe], None], tell: Breathe) -> None:
    """Take parts in both threads until none is left."""
    helper = _Helper(take_parts)
    breathed = time.monotonic()

    def breathe() -> None:
        nonlocal breathed
        if time.monotonic() - breathed >= BREATHS_APART:
            with helper.at_rest():
                tell()
            breathed = time.monotonic()

    try:
        helper.begin()
        take_parts(breathe)
        while helper.is_alive():
            helper.join(BREATHS_APART)
            breathe()
    finally:
        helper.end()
    if helper.error is not None:
        raise helper.error


class _Stopped(Exception):  # noqa: N818 - no error: the way out of work that nobody wants any more
    """Ends the helper's work."""


class _Helper(threading.Thread):
    """The second thread."""

    def __init__(self, take_parts: Callable[[Breathe], None]) -> None:
        super().__init__(daemon=True)
        self.error: BaseException | None = None
        self._take_parts = take_parts
        self._changed = threading.Condition()
        self._shall_rest = self._shall_stop = False
        self._rests = True

    def begin(self) -> None:
        """Start with all signals blocked; where no thread can be had, there is no helper."""
        own = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self.start()
        except RuntimeError:
            pass
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, own)

    def run(self) -> None:
        """Take parts, from the second thread."""
        try:
            self._breathe()
            self._take_parts(self._breathe)
        except _Stopped:
            pass
        except BaseException as error:
            self.error = error
        finally:
            with self._changed:
                self._rests = True
                self._changed.notify_all()

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Let the helper rest meanwhile; it comes to that when it breathes next, or is over."""
        with self._changed:
            self._shall_rest = True
            self._changed.wait_for(lambda: self._rests)
        try:
            yield
        finally:
            with self._changed:
                self._shall_rest = False
                self._changed.notify_all()

    def end(self) -> None:
        """Stop, and wait for the end."""
        with self._changed:
            self._shall_stop = True
        if self.ident is not None:
            self.join()

    def _breathe(self) -> None:
        """Rest if that is wanted."""
        with self._changed:
            self._rests = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._shall_rest)
            self._rests = False
            if self._shall_stop:
                raise _Stopped
