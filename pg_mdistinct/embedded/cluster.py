"""Makes the data folder, and never leaves half of one behind."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from pg_mdistinct.embedded.account import Account
from pg_mdistinct.embedded.errors import EmbeddedServerError
from pg_mdistinct.embedded.installation import Installation, find_installation
from pg_mdistinct.embedded.places import HOME_VARIABLE, Places, make_private_folder, write_private
from pg_mdistinct.embedded.settings import ACCESS, SETTINGS_FILE

SUPERUSER = "postgres"


def server_environment(places: Places) -> dict[str, str]:
    """An environment of our own for the server's programs.

    The interpreter inside PL/Python takes its standard library from the first python3 on PATH and
    packages from HOME: a virtual environment or pyenv of the caller must not get in there.
    """
    return {
        "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": str(places.home),
        "LC_ALL": "C.UTF-8",
    }


def ensure_cluster(
    places: Places, account: Account, say: Callable[[str], None], *, throwaway: bool
) -> Installation:
    """Makes the data folder if there is none, and tells which PostgreSQL it belongs to."""
    _set_aside_broken_data(places, say)
    if places.data.exists():
        _check_owner(places.data, account)
        _check_purpose(places, throwaway=throwaway)
        return _installation_of(places.data)
    installation = find_installation()
    say(f"Creating a private PostgreSQL {installation.major} in {places.home}")
    _create(places, account, installation, throwaway=throwaway)
    return installation


def _create(
    places: Places, account: Account, installation: Installation, *, throwaway: bool
) -> None:
    """Prepares the folder under another name, so that `data` is complete or not there."""
    folder = places.unfinished_data
    if folder.exists():
        shutil.rmtree(folder)
    places.throwaway.unlink(missing_ok=True)
    if throwaway:
        write_private(places.throwaway, "", account)
    make_private_folder(folder, account)
    _initdb(places, account, installation, throwaway=throwaway)
    write_private(folder / "pg_hba.conf", ACCESS, account)
    write_private(folder / SETTINGS_FILE, "", account)
    with (folder / "postgresql.conf").open("a") as settings:
        settings.write(f"\ninclude '{SETTINGS_FILE}'\n")
    folder.rename(places.data)


def _initdb(
    places: Places, account: Account, installation: Installation, *, throwaway: bool
) -> None:
    password = secrets.token_urlsafe(24)
    password_file = places.home / "password"
    write_private(password_file, password, account)
    write_private(places.password, f"127.0.0.1:*:*:{SUPERUSER}:{password}\n", account)
    result = account.run(
        installation.program("initdb"),
        f"--pgdata={places.unfinished_data}",
        f"--username={SUPERUSER}",
        f"--pwfile={password_file}",
        "--auth-local=trust",
        "--auth-host=scram-sha-256",
        "--encoding=UTF8",
        "--locale=C.UTF-8",
        "--lc-messages=C",
        *(["--no-sync"] if throwaway else []),
        cwd=places.home,
        env=server_environment(places),
    )
    password_file.unlink()
    if result.returncode != 0:
        raise EmbeddedServerError(f"initdb failed:\n{result.stderr.strip()}")


def _set_aside_broken_data(places: Places, say: Callable[[str], None]) -> None:
    """Moves a folder out of the way that no server can start from; nothing is deleted."""
    data = places.data
    if not data.exists() or ((data / "PG_VERSION").exists() and _control_file(data).exists()):
        return
    aside = data.with_name(f"data.broken-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}")
    data.rename(aside)
    say(f"The data folder was only half made; it is now {aside}")


def _control_file(data: Path) -> Path:
    return data / "global" / "pg_control"


def _check_owner(data: Path, account: Account) -> None:
    if data.stat().st_uid != account.uid:
        raise EmbeddedServerError(
            f"{data} belongs to another account",
            f"start the server as its owner, or set {HOME_VARIABLE} to a folder of your own",
        )


def _check_purpose(places: Places, *, throwaway: bool) -> None:
    if throwaway and not places.throwaway.exists():
        raise EmbeddedServerError(
            f"{places.home} holds data that is to be kept",
            "give the throwaway server a home of its own",
        )


def _installation_of(data: Path) -> Installation:
    major = int((data / "PG_VERSION").read_text())
    try:
        return find_installation(major)
    except EmbeddedServerError as error:
        raise EmbeddedServerError(
            f"{data} was made by PostgreSQL {major}, which is not installed with PL/Python here",
            f"install postgresql-{major} and postgresql-plpython3-{major}, or move the folder away "
            "to begin with an empty server",
        ) from error
