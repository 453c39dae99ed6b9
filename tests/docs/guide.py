"""Plays a guide of docs/ as its reader would: runs each block in order, compares what it shows.

Blocks of `sql` go to psql, each as a session of its own; blocks of `python` are one program, which
finds the database in `dsn`; in blocks of `console` lines that begin with `$ ` are commands, whose
database is in $PG_MDISTINCT_DSN, and the others what they print. A block of `text` is what the
block of `sql` or `python` before it prints, to the letter; `...` stands for anything. Any other
block is not run.

A comment before a block changes that: `<!-- numbers within 20% -->` compares words one by one and
lets numbers differ, `<!-- not run: reason -->` leaves the block out.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(
    r"(?:^<!-- (?P<comment>[^\n]*) -->\n+)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_WITHIN = re.compile(r"numbers within (\d+)%")
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")
_PSQL = ("psql", "-X", "-q", "--no-psqlrc", "-v", "SHOW_CONTEXT=never", "-P", "footer=off")


@dataclass(frozen=True)
class Block:
    """A block of a guide, with what a comment says of it."""

    language: str
    text: str
    comment: str
    line: int

    @property
    def is_left_out(self) -> bool:
        """Whether the block is for reading only."""
        return self.comment.startswith("not run:")

    @property
    def tolerance(self) -> float | None:
        """By which share numbers may differ, if they may."""
        found = _WITHIN.fullmatch(self.comment)
        return found and int(found[1]) / 100


def blocks(text: str) -> list[Block]:
    """All blocks of a guide, in order."""
    return [
        Block(
            found["language"],
            found["text"],
            found["comment"] or "",
            1 + text.count("\n", 0, found.start("text")),
        )
        for found in _BLOCK.finditer(text)
    ]


def play(path: Path, dsn: str, folder: Path) -> int:
    """Plays a guide on a database, in a folder for its files; returns how many blocks it ran."""
    player = _Player(dsn, folder)
    played, printed = 0, ""
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.is_left_out:
            continue
        with _told(path, block):
            if block.language in ("sql", "python"):
                _no_surprise(printed)
                printed = player.sql(block) if block.language == "sql" else player.python(block)
            elif block.language == "console":
                player.console(block)
            elif block.language == "text":
                compare(printed, block.text, block.tolerance)
                printed = ""
            else:
                continue
        played += 1
    _no_surprise(printed)
    return played


def compare(printed: str, expected: str, tolerance: float | None = None) -> None:
    """Refuses output that is not what the guide shows."""
    shown, wanted = (_lines(text) for text in (printed, expected))
    if tolerance is None:
        pattern = re.escape("\n".join(wanted)).replace(re.escape("..."), ".*")
        if re.fullmatch(pattern, "\n".join(shown), re.DOTALL):
            return
    elif _alike(_words(shown), _words(wanted), tolerance):
        return
    raise AssertionError("it prints\n" + "\n".join(shown) + "\nand not\n" + "\n".join(wanted))


class _Player:
    def __init__(self, dsn: str, folder: Path) -> None:
        self._dsn, self._folder = dsn, folder
        self._names: dict[str, Any] = {"dsn": dsn, "__name__": "guide"}

    def sql(self, block: Block) -> str:
        printed = self._run([*_PSQL, "-d", self._dsn], block.text)
        # A slow machine is told how far a publication is.
        return re.sub(r"^NOTICE:  [^:\n]+: \d+%\n", "", printed, flags=re.MULTILINE)

    def python(self, block: Block) -> str:
        printed = io.StringIO()
        # As many lines before it as in the guide, so that a traceback points there.
        code = compile("\n" * (block.line - 1) + block.text, "guide", "exec")
        with contextlib.redirect_stdout(printed), contextlib.chdir(self._folder):
            exec(code, self._names)
        return printed.getvalue()

    def console(self, block: Block) -> None:
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, expected = _command(part)
            compare(
                self._run(["bash", "-euo", "pipefail", "-c", command]), expected, block.tolerance
            )

    def _run(self, command: list[str], given: str = "") -> str:
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            command,
            input=given,
            cwd=self._folder,
            env={
                **os.environ,
                "PATH": programs,
                "PYTHONPATH": str(ROOT),
                "PG_MDISTINCT_DSN": self._dsn,
                "COLUMNS": "100",
                "PGTZ": "UTC",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            raise AssertionError(f"{command[0]} ends with {done.returncode}:\n{done.stdout}")
        return done.stdout


@contextlib.contextmanager
def _told(path: Path, block: Block) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{path.name}, line {block.line}: {error}") from error


def _no_surprise(printed: str) -> None:
    """What a guide does not show need not be shown, unless it is trouble."""
    if trouble := re.search(r"^(ERROR|WARNING|FATAL): .*", printed, re.MULTILINE):
        raise AssertionError(f"the guide does not say that this happens: {trouble[0]}")


def _command(part: str) -> tuple[str, str]:
    """A command, which may go on over lines that end with a backslash, and what it prints."""
    lines = part.splitlines()
    last = next(i for i, line in enumerate(lines) if not line.endswith("\\"))
    return "\n".join(lines[: last + 1]), "\n".join(lines[last + 1 :])


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines() if line.strip()]


def _words(lines: list[str]) -> list[str]:
    """Words and numbers, without the rules and bars of tables."""
    return [word for line in lines for word in re.split(r"[\s|│]+", line) if word.strip("-+─ ")]


def _alike(shown: list[str], wanted: list[str], tolerance: float) -> bool:
    return len(shown) == len(wanted) and all(
        one == other or _near(one, other, tolerance)
        for one, other in zip(shown, wanted, strict=True)
    )


def _near(one: str, other: str, tolerance: float) -> bool:
    if not (_NUMBER.fullmatch(one) and _NUMBER.fullmatch(other)):
        return False
    return abs(float(one) - float(other)) <= tolerance * abs(float(other))
