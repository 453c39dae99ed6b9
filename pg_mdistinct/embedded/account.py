"""The operating system account that the server runs as: PostgreSQL refuses to run as root."""

from __future__ import annotations

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pg_mdistinct.embedded.errors import EmbeddedServerError

_UNPRIVILEGED = ("postgres", "nobody")


@dataclass(frozen=True)
class Account:
    """An account to run programs as; `drop` says whether we must become it first."""

    uid: int
    gid: int
    name: str
    drop: bool

    def run(
        self, *command: str, cwd: Path, env: dict[str, str], check: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Runs a program as this account, with files private to it, and captures its output."""
        return subprocess.run(
            command,
            cwd=cwd,
            env=env,
            check=check,
            text=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            umask=0o077,
            start_new_session=True,
            user=self.uid if self.drop else None,
            group=self.gid if self.drop else None,
            extra_groups=[self.gid] if self.drop else None,
        )

    def give(self, path: Path) -> None:
        """Makes this account the owner of a file or folder that we have just made."""
        if self.drop:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def can_enter(self, folder: Path) -> bool:
        """Whether the account may traverse to that folder (or to where it would be made)."""
        existing = folder
        while not existing.exists():
            existing = existing.parent
        if not self.drop:
            return os.access(existing, os.X_OK)
        return self.run("test", "-x", str(existing), cwd=Path("/"), env={}).returncode == 0


def account_for(data: Path) -> Account:
    """The account that runs the server of a data folder.

    An ordinary user runs it as himself. Root runs an existing server as the owner of its data, so
    that root and an ordinary user can share a checkout, and a new one as an unprivileged account.
    """
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), _name(os.geteuid()), drop=False)
    try:
        owner = data.stat()
    except FileNotFoundError:
        return _unprivileged()
    if owner.st_uid == 0:
        return _unprivileged()
    return Account(owner.st_uid, owner.st_gid, _name(owner.st_uid), drop=True)


def _unprivileged() -> Account:
    for name in _UNPRIVILEGED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid, name, drop=True)
    raise EmbeddedServerError(
        "there is no unprivileged account to run PostgreSQL as",
        "create the account postgres, or run this as an ordinary user",
    )


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
