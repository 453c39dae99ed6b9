"""A bar for long work: the phase, how much of it is done, and how long it still takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars

from pg_mdistinct.client.progress import OnProgress, Progress


@contextmanager
def progress_bar(title: str, console: Console | None = None) -> Iterator[OnProgress]:
    """Shows a bar on standard error while a call runs; only where somebody looks at it."""
    console = console or Console(stderr=True)
    bars = Bars(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    # Without a total the bar pulses: nothing is known before the server tells of its first phase.
    task = bars.add_task(title, total=None)
    phase = ""

    def show(progress: Progress) -> None:
        nonlocal phase
        if progress.phase != phase:
            phase = progress.phase
            # The time that remains is reckoned for each phase from its own speed.
            bars.reset(task, total=1.0, description=f"{title}: {phase}")
        bars.update(task, completed=progress.share)

    with bars:
        yield show
