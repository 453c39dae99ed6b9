"""`pg-mdistinct experiment`: the paper's experiments, and those about it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click
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

from pg_mdistinct.cli.console import say
from pg_mdistinct.cli.output import print_table

if TYPE_CHECKING:
    from pg_mdistinct.experiments.registry import Experiment, Progress, Setting
    from pg_mdistinct.experiments.store import Store

ALL = "all"


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--scale",
    type=click.FloatRange(0, 1, min_open=True),
    default=1.0,
    show_default=True,
    help="Size of the workload; 1 is the paper's, 20,000 records at first.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("experiments"),
    show_default=True,
    help="The folder for tables (CSV) and figures (SVG).",
)
@click.option("--seed", default=2008, show_default=True, help="The same seed, the same results.")
@click.option("--again", is_flag=True, help="Run also what is finished already.")
def experiment(names: tuple[str, ...], scale: float, output: Path, seed: int, again: bool) -> None:
    """Regenerate the figures of the experiments called NAME, or of all; without NAME, list them.

    What was finished with the same scale and seed is not computed again, so an interrupted run
    goes on where it stopped.
    """
    # NumPy and Numba would slow every command down if they were imported above.
    from pg_mdistinct.experiments.registry import Setting, experiments
    from pg_mdistinct.experiments.store import Store

    known = experiments()
    if not names:
        print_table(("name", "title"), [(found.name, found.title) for found in known.values()])
        return
    setting, store = Setting(scale, seed), Store(output)
    for chosen in _chosen(known, names):
        if not again and store.has(chosen.name, setting):
            say(f"{chosen.name}: finished before")
        else:
            _run(chosen, setting, store)


def _chosen(known: dict[str, Experiment], names: tuple[str, ...]) -> list[Experiment]:
    """Return what was asked for; of all, what can be run with what is installed."""
    if unknown := sorted(set(names) - known.keys() - {ALL}):
        raise click.UsageError(
            f"there is no experiment called {', '.join(unknown)}; there are: "
            f"{', '.join(known)}, and {ALL}"
        )
    chosen = []
    for found in known.values():
        missing = [module for module in found.needs if find_spec(module) is None]
        advice = f"{found.name} needs {', '.join(missing)}: pip install 'pg-mdistinct[experiments]'"
        if found.name in names and missing:
            raise click.ClickException(advice)
        if missing and ALL in names:
            say(f"left out: {advice}")
        elif ALL in names or found.name in names:
            chosen.append(found)
    return chosen


def _run(chosen: Experiment, setting: Setting, store: Store) -> None:
    from pg_mdistinct.experiments.registry import Skipped

    started = time.perf_counter()
    try:
        with _progress(chosen.name) as progress:
            outcome = chosen.run(setting, progress)
    except Skipped as reason:
        say(f"{chosen.name}: skipped: {reason}")
        return
    seconds = time.perf_counter() - started
    try:
        files = store.keep(chosen.name, setting, outcome, seconds)
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"figures need {error.name}; install it with: pip install 'pg-mdistinct[report]'"
        ) from error
    say(f"{chosen.name}: {seconds:.1f} s, {', '.join(file.name for file in files)}")


@contextmanager
def _progress(name: str) -> Iterator[Progress]:
    """Show a bar on standard error where somebody looks at it."""
    console = Console(stderr=True)
    bar = Bars(
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
    task = bar.add_task(name, total=1.0)

    def show(words: str, share: float) -> None:
        bar.update(task, description=f"{name}: {words}", completed=share)

    with bar:
        yield show
