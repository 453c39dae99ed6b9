"""Where the command line talks to people; results that scripts read go to standard output."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text


def say(message: str) -> None:
    """Tells people on standard error what is being done."""
    # A console of its own each time, so that it finds standard error where it is now.
    Console(stderr=True, soft_wrap=True).print(Text(message, style="cyan"))
