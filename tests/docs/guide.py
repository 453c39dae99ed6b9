"""Plays a guide of docs/ as its reader would: runs each block in order, compares what it shows.

Blocks of `sql` go to one session of psql; blocks of `python` are one program, which
finds the database in `dsn`; in blocks of `console` lines that begin with `$ ` are commands, whose
database is in $PG_MDISTINCT_DSN, and the others what they print; a block of `sh` is a script that
must succeed, whatever it prints. A block of `text` is what the block of `sql` or `python` before it
prints, to the letter; `...` stands for anything.

A comment before a block changes that. `<!-- numbers within 20% -->` compares words one by one and
lets numbers differ (with `or 0` behind it, also vanish); `<!-- drawn by chance -->` compares
headings to the letter and of all other cells only whether they are numbers, ranges, sets or words;
`<!-- file: name -->` is what a file is to hold; `<!-- not run: reason -->` leaves the block out. A
block of any other kind needs such a reason.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.documents import ROOT, Block, blocks_of

_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")
_KINDS = {
    "number": _NUMBER,
    "range": re.compile(r"[\[(].*,.*[\])]"),
    "set": re.compile(r"\{.*\}"),
    "rule": re.compile(r"[-+─]+"),
}
_END = "the block has ended"
_PSQL = ("psql", "-X", "-q", "--no-psqlrc", "-v", "SHOW_CONTEXT=never", "-P", "footer=off")


def play(path: Path, dsn: str, folder: Path) -> int:
    """Plays a guide on a database, in a folder for its files; returns how many blocks it ran."""
    with _Player(dsn, folder) as player:
        played, printed = 0, ""
        for block in blocks_of(path.read_text(encoding="utf-8")):
            if block.is_left_out:
                continue
            with _told(path, block):
                if block.language == "text":
                    by_chance = block.is_drawn_by_chance
                    compare(printed, block.text, block.tolerance, by_chance=by_chance)
                    printed = ""
                else:
                    _no_surprise(printed)
                    printed = player.run(block)
            played += 1
    _no_surprise(printed)
    return played


def compare(
    printed: str,
    expected: str,
    tolerance: float | None = None,
    *,
    by_chance: bool = False,
    or_zero: bool = False,
) -> None:
    """Refuses output that is not what the guide shows."""
    shown, wanted = (_lines(text) for text in (printed, expected))
    if by_chance:
        if [_cells(line) for line in shown] == [_cells(line) for line in wanted]:
            return
    elif tolerance is None:
        pattern = re.escape("\n".join(wanted)).replace(re.escape("..."), ".*")
        if re.fullmatch(pattern, "\n".join(shown), re.DOTALL):
            return
    elif _alike(_words(shown), _words(wanted), tolerance, or_zero=or_zero):
        return
    raise AssertionError("it prints\n" + "\n".join(shown) + "\nand not\n" + "\n".join(wanted))


class _Player:
    def __init__(self, dsn: str, folder: Path) -> None:
        self._folder = folder
        self._names: dict[str, Any] = {"dsn": dsn, "__name__": "guide"}
        self._environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "PG_MDISTINCT_DSN": dsn,
            "COLUMNS": "100",
            "PGTZ": "UTC",
        }
        self._psql = subprocess.Popen(
            [*_PSQL, "-d", dsn],
            cwd=folder,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __enter__(self) -> _Player:
        return self

    def __exit__(self, *_: object) -> None:
        self._psql.communicate()

    def run(self, block: Block) -> str:
        """What a block prints that is still to be compared."""
        if block.file:
            (self._folder / block.file).write_text(block.text, encoding="utf-8")
            return ""
        if block.language == "sql":
            return self.sql(block)
        if block.language == "python":
            return self.python(block)
        if block.language == "sh":
            self._bash(block.text)
            return ""
        if block.language != "console":
            raise AssertionError("nobody runs this block; <!-- not run: ... --> tells why")
        self.console(block)
        return ""

    def sql(self, block: Block) -> str:
        assert self._psql.stdin is not None
        assert self._psql.stdout is not None
        # Before psql calls another program it writes out all that it has to say.
        print(block.text, rf"\! echo {_END}", sep="\n", file=self._psql.stdin, flush=True)
        printed = ""
        for line in self._psql.stdout:
            if line.rstrip() == _END:
                # A slow machine is told how far a publication is.
                return re.sub(r"^NOTICE:  [^:\n]+: \d+%\n", "", printed, flags=re.MULTILINE)
            printed += line
        raise AssertionError(f"psql has ended:\n{printed}")

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
            compare(self._bash(command), expected, block.tolerance, or_zero=block.may_be_zero)

    def _bash(self, script: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            stdin=subprocess.DEVNULL,
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            raise AssertionError(f"bash ends with {done.returncode}:\n{done.stdout}")
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


def _cells(line: str) -> list[str]:
    """The kinds of a line's cells; words are headings, or values that anybody may have."""
    return [_kind(cell.strip()) for cell in re.split(r"[|│]", line)]


def _kind(cell: str) -> str:
    for kind, pattern in _KINDS.items():
        if pattern.fullmatch(cell):
            return kind
    return cell if cell.islower() else "word"


def _words(lines: list[str]) -> list[str]:
    """Words and numbers, without the rules and bars of tables."""
    return [word for line in lines for word in re.split(r"[\s|│]+", line) if word.strip("-+─ ")]


def _alike(shown: list[str], wanted: list[str], tolerance: float, *, or_zero: bool) -> bool:
    return len(shown) == len(wanted) and all(
        one == other or _near(one, other, tolerance) or (or_zero and _is_zero(one, other))
        for one, other in zip(shown, wanted, strict=True)
    )


def _is_zero(one: str, other: str) -> bool:
    both_numbers = _NUMBER.fullmatch(one) and _NUMBER.fullmatch(other)
    return bool(both_numbers) and float(one) == 0


def _near(one: str, other: str, tolerance: float) -> bool:
    if not (_NUMBER.fullmatch(one) and _NUMBER.fullmatch(other)):
        return False
    return abs(float(one) - float(other)) <= tolerance * abs(float(other))
