"""What goes wrong with the embedded server, in words for people."""

from __future__ import annotations


class EmbeddedServerError(Exception):
    """The embedded server cannot be started, stopped or reached."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nHINT: {self.hint}"
