"""How the demo looks: tables, statements, verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from psycopg.types.range import Range
from rich.columns import Columns
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from pg_mdistinct.demo.adversary import Belief, disclosed

_TURNS = ("yellow", "bright_blue")


class Screen:
    """Writes the demo to a console."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def act(self, title: str) -> None:
        """Begins a part of the story."""
        self._console.print()
        self._console.print(Rule(Text(title, style="bold cyan"), align="left", style="cyan"))

    def say(self, words: str, style: str = "") -> None:
        """One paragraph."""
        self._console.print(Text(words, style=style))

    def command(self, line: str) -> None:
        """A command to copy: never broken, however long."""
        self._console.print(Text(line, style="bold"), soft_wrap=True)

    def sql(self, statement: str) -> None:
        """The statement that is being run, as one would type it."""
        code = Syntax(statement.strip(), "postgresql", theme="ansi_dark", word_wrap=True)
        self._console.print(Padding(code, (0, 0, 0, 2)))

    def tables(self, *tables: Table) -> None:
        """Tables side by side where they fit."""
        self._console.print(Columns(tables, padding=(0, 3)))


def plain_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """Cells as PostgreSQL shows them; groups in turns of colour where there is a gid column."""
    table = _table(title, headings)
    gid = headings.index("gid") if "gid" in headings else None
    seen: list[Any] = []
    for row in rows:
        group = None if gid is None else row[gid]
        if group not in seen:
            seen.append(group)
        style = _TURNS[seen.index(group) % len(_TURNS)] if gid is not None else ""
        table.add_row(*(Text(_cell(cell)) for cell in row), style=style)
    return table


def beliefs_table(title: str, people: Mapping[str, Sequence[Belief]]) -> Table:
    """Everybody's candidates in each release: crossed out, known, or still possible."""
    releases = max(map(len, people.values()))
    table = _table(title, ["patient", *(f"release {n + 1}" for n in range(releases))])
    for name, versions in people.items():
        table.add_row(Text(name), *map(_candidates, versions))
    return table


def _cell(value: Any) -> str:
    """A value as psql shows it."""
    if isinstance(value, Range) and not value.isempty:
        return f"{value.bounds[0]}{value.lower},{value.upper}{value.bounds[1]}"
    return str(value)


def _table(title: str, headings: Sequence[str]) -> Table:
    return Table(
        *headings,
        title=Text(title),
        title_justify="left",
        title_style="bold",
        header_style="underline",
        box=None,
        padding=(0, 1, 0, 0),
    )


def _candidates(belief: Belief) -> Text:
    known = disclosed(belief)
    # Signs as well as colours: not every terminal has colours, nor every eye.
    return Text(", ").join(
        Text(f"✗ {value}", style="dim strike")
        if probability == 0
        else Text(f"● {value}", style="bold red")
        if value == known
        else Text(f"? {value} {probability:.0%}", style="green")
        for value, probability in belief.items()
    )
