"""Where the embedded server keeps its files."""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pg_mdistinct.embedded.account import Account, account_for
from pg_mdistinct.embedded.errors import EmbeddedServerError
from pg_mdistinct.resources import checkout_root

HOME_VARIABLE = "PG_MDISTINCT_HOME"
_SYSTEM_FOLDER = Path("/var/lib/pg-mdistinct")
_SOCKET_FALLBACK = Path("/tmp")
# A socket's address holds 107 bytes, of which "/.s.PGSQL.65535.lock" takes 20.
_LONGEST_SOCKET_FOLDER = 80


@dataclass(frozen=True)
class Places:
    """The files of one embedded server, all below its home."""

    home: Path

    @property
    def data(self) -> Path:
        """PostgreSQL's data folder."""
        return self.home / "data"

    @property
    def unfinished_data(self) -> Path:
        """Where a data folder is prepared; it becomes `data` when it is complete."""
        return self.home / "data.unfinished"

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.home / "server.log"

    @property
    def old_log(self) -> Path:
        """The log before the last rotation."""
        return self.home / "server.log.old"

    @property
    def cache(self) -> Path:
        """Where Numba keeps what it compiles of code that lies in a folder of the system."""
        return self.home / ".cache"

    @property
    def lock(self) -> Path:
        """Held by whoever starts or stops the server."""
        return self.home / "lock"

    @property
    def password(self) -> Path:
        """The superuser's password for TCP, as a libpq password file."""
        return self.home / "pgpass"

    @property
    def throwaway(self) -> Path:
        """Present where the data may be lost, and is deleted when the server stops."""
        return self.home / "throwaway"

    @property
    def sockets(self) -> Path:
        """The private folder of the socket, elsewhere if the home's path does not suit one."""
        folder = self.home / "run"
        # libpq takes a comma for the beginning of the next host.
        if len(os.fsencode(folder)) <= _LONGEST_SOCKET_FOLDER and "," not in str(folder):
            return folder
        return _SOCKET_FALLBACK / f"pg-mdistinct-{path_hash(self.home)}"

    @property
    def cluster_name(self) -> str:
        """Stands in the title of each server process, which is how we recognise our own."""
        return f"pg-mdistinct-{path_hash(self.data)}"


def settle(home: Path | None, *, throwaway: bool) -> Places:
    """Decides where a server's home is: as asked for, else where it belongs by default.

    A home that the server's account cannot enter (root's own folders, mostly) gives way to a
    folder of the system that is named after it.
    """
    wanted = home or (_temporary_home() if throwaway else default_home())
    wanted = wanted.expanduser().absolute()
    account = account_for(wanted / "data")
    if account.drop and not account.can_enter(wanted):
        return Places(_SYSTEM_FOLDER / path_hash(wanted))
    return Places(wanted)


def default_home() -> Path:
    """The home of this checkout's or this user's own server."""
    chosen = os.environ.get(HOME_VARIABLE)
    if chosen:
        return Path(chosen)
    root = checkout_root()
    if root is None:
        return _user_data_folder()
    home = root / ".pg-mdistinct"
    return home if _is_ours_to_use(home) else _user_data_folder() / path_hash(root)


def path_hash(path: Path) -> str:
    """A short name that stands for a path."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]


def make_private_folder(folder: Path, account: Account) -> None:
    """Makes sure that the folder exists and belongs to the server's account alone."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        _check_private(folder, account)
    else:
        account.give(folder)


def make_home(home: Path, account: Account) -> None:
    """Makes the home, with parents that the server's account can traverse."""
    missing = [parent for parent in home.parents if not parent.exists()]
    for parent in reversed(missing):
        parent.mkdir(exist_ok=True)
        if account.drop:
            parent.chmod(0o755)
    try:
        home.mkdir(mode=0o700)
    except FileExistsError:
        return
    account.give(home)


def write_private(path: Path, text: str, account: Account) -> None:
    """Writes a file that the server's account alone can read."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    account.give(path)


def _check_private(folder: Path, account: Account) -> None:
    """Refuses a folder that somebody else could have put there for us to fall into."""
    found = folder.lstat()
    if folder.is_symlink() or not folder.is_dir() or found.st_uid != account.uid:
        raise EmbeddedServerError(
            f"{folder} does not belong to the account {account.name}",
            f"move it away, or set {HOME_VARIABLE} to another folder",
        )
    folder.chmod(0o700)


def _temporary_home() -> Path:
    return Path(tempfile.gettempdir()) / f"pg-mdistinct-{secrets.token_hex(8)}"


def _user_data_folder() -> Path:
    # The XDG standard says that relative paths are to be ignored.
    base = Path(os.environ.get("XDG_DATA_HOME", ""))
    folder = base if base.is_absolute() else Path("~/.local/share").expanduser()
    return folder / "pg-mdistinct"


def _is_ours_to_use(home: Path) -> bool:
    """Whether this user may keep a server there; root may everywhere."""
    if os.geteuid() == 0:
        return True
    if home.exists():
        return home.stat().st_uid == os.geteuid()
    return os.access(home.parent, os.W_OK)
