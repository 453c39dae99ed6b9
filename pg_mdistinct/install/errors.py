"""What the installer raises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pg_mdistinct.core.errors import MdistinctError

NOT_READY = "55000"


@dataclass(frozen=True)
class Problem:
    """One thing that stands in the way of an installation, and what to run about it."""

    message: str
    hint: str


class InstallError(MdistinctError):
    """The plugin could not be installed, upgraded or removed, or does not run."""

    def __init__(self, message: str, *, hint: str, detail: str | None = None) -> None:
        super().__init__(message, hint=hint, sqlstate=NOT_READY, detail=detail)


class NotReadyError(InstallError):
    """The server lacks something; `problems` names all of it, so that one round mends it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(
            "; ".join(problem.message for problem in problems),
            hint="\n      ".join(problem.hint for problem in problems),
        )
        self.problems = tuple(problems)
