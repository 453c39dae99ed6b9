"""The one exception of the project that a user is meant to read."""

from __future__ import annotations


class MdistinctError(Exception):
    """Something the user can mend: what is wrong, what to do, and a code to switch on."""

    def __init__(
        self, message: str, *, hint: str, sqlstate: str, detail: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.sqlstate = sqlstate
        self.detail = detail

    def __str__(self) -> str:
        """Return all that there is to say, for places that show nothing else."""
        said = [self.message]
        if self.detail:
            said.append(f"DETAIL: {self.detail}")
        if self.hint:
            said.append(f"HINT: {self.hint}")
        return "\n".join(said)


UNKNOWN_VALUE = "MD001"
IMPOSSIBLE_UPDATE = "MD002"
DOMAIN_TOO_SMALL = "MD003"
SOURCE_CHANGED = "MD004"
NOT_A_NUMBER = "MD005"
NO_LEGAL_RELEASE = "MD006"
RISK_TOO_HIGH = "MD007"
INCONSISTENT_HISTORY = "MD008"
MODEL_BREAKS_HISTORY = "MD009"
