"""Python's garbage collector, and when it is not wanted."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the collector away from work that makes much and leaves no cycles behind."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def staying() -> Iterator[None]:
    """Load what stays as long as the process: the collector need never look through it."""
    with uncollected():
        yield
        gc.freeze()
