"""Builds the files of the PostgreSQL extension from the same `sql/` that the installer executes.

    python3 -m pg_mdistinct.install.extension --pg-config pg_config [--destdir DIR] [--remove]

Needs the standard library alone: a server's machine has little else.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pg_mdistinct
from pg_mdistinct import resources
from pg_mdistinct.install import sources
from pg_mdistinct.install.render import Rendering, render

NAME = "pg_mdistinct"
# Released versions of the extension, with the revision that each of them stands at: from every one
# of them an update script leads to this version.
FORMER_VERSIONS: dict[str, str] = {"0.1.0": "0002"}

_CONTROL = """\
comment = 'm-Distinct republication of dynamic tables'
default_version = '{version}'
requires = 'plpython3u'
relocatable = false
superuser = true
"""
_GUARD = '\\echo Use "{statement}" to load this file. \\quit\n'
# Roles belong to the whole cluster: a lock on a shared catalog keeps other installers out of it.
_SETTINGS = """\
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = warning;
SET LOCAL check_function_bodies = off;
LOCK TABLE pg_catalog.pg_authid IN SHARE ROW EXCLUSIVE MODE;
SELECT pg_catalog.set_config('mdistinct.installer', pg_catalog.current_setting('role'), true);
"""
_BECOME_OWNER = "SET LOCAL ROLE mdistinct_owner;\n"
# RESET would outlast the transaction, and forget a role that the caller had set.
_BECOME_INSTALLER = (
    "SELECT pg_catalog.set_config('role',"
    " pg_catalog.current_setting('mdistinct.installer'), true);\n"
)


def scripts(code: str, former_versions: dict[str, str] | None = None) -> dict[str, str]:
    """The control file and the scripts, by name, for server code in the given folder."""
    version = pg_mdistinct.__version__
    files = {
        f"{NAME}.control": _CONTROL.format(version=version),
        f"{NAME}--{version}.sql": _script(
            f"CREATE EXTENSION {NAME}", sources.schema_files(sources.revisions()[-1]), code
        ),
    }
    for former, revision in (former_versions or FORMER_VERSIONS).items():
        files[f"{NAME}--{former}--{version}.sql"] = _script(
            f"ALTER EXTENSION {NAME} UPDATE", _steps_since(revision), code
        )
    return files


def state_script(revision: str) -> str:
    """The state of a revision alone, without the functions."""
    return (
        _GUARD.format(statement=f"CREATE EXTENSION {NAME}")
        + _SETTINGS
        + _state(sources.schema_files(revision))
    )


def folder_of(pg_config: str) -> Path:
    """Where the server of this pg_config looks for extensions."""
    result = subprocess.run([pg_config, "--sharedir"], capture_output=True, text=True, check=True)
    return Path(result.stdout.strip()) / "extension"


def install(pg_config: str, destdir: str = "") -> None:
    """Writes everything to where the server of this pg_config looks for extensions."""
    folder = folder_of(pg_config)
    # The folder stands in the functions as the server will see it: without the destdir.
    code = folder / NAME / pg_mdistinct.__version__
    shutil.rmtree(_below(destdir, code), ignore_errors=True)
    for name, text in scripts(str(code)).items():
        _write(_below(destdir, folder / name), text)
    for name, text in sources.server_files().items():
        path = _below(destdir, code / name)
        _write(path, text)
        # Numba knows its sources by their time: what it has compiled outlasts installing again.
        shutil.copystat(sources.server_file(name), path)
        path.chmod(0o644)


def remove(pg_config: str, destdir: str = "") -> None:
    """Removes all versions."""
    folder = _below(destdir, folder_of(pg_config))
    shutil.rmtree(folder / NAME, ignore_errors=True)
    for path in (*folder.glob(f"{NAME}--*.sql"), folder / f"{NAME}.control"):
        path.unlink(missing_ok=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Install or remove the extension's files."""
    parser = argparse.ArgumentParser(prog="pg_mdistinct.install.extension", description=__doc__)
    parser.add_argument("--pg-config", default="pg_config")
    parser.add_argument("--destdir", default="")
    parser.add_argument("--remove", action="store_true")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.remove:
            remove(chosen.pg_config, chosen.destdir)
        else:
            install(chosen.pg_config, chosen.destdir)
            sys.stdout.write(
                f"{NAME} {pg_mdistinct.__version__}: CREATE EXTENSION {NAME} CASCADE;\n"
            )
    except (OSError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"{error}\nHINT: run as root, and see that PG_CONFIG names a pg_config\n")
        return 1
    return 0


def _script(statement: str, state: Sequence[Path], code: str) -> str:
    folder = resources.sql_dir()
    rendering = Rendering(
        code=code,
        version=pg_mdistinct.__version__,
        load=(folder / "load.py.in").read_text(encoding="utf-8"),
        modules=sources.server_modules(),
        repair="make install-extension",
    )
    functions = [render(path, rendering) for path in sorted((folder / "functions").glob("*.sql"))]
    plain = [
        *sorted((folder / "views").glob("*.sql")),
        folder / "ownership.sql",
        folder / "pg_cron.sql",
        folder / "extension.sql",
    ]
    return "\n".join(
        [
            _GUARD.format(statement=statement) + _SETTINGS,
            _state(state),
            *functions,
            *(path.read_text(encoding="utf-8") for path in plain),
            "SET LOCAL check_function_bodies = on;\n",
            (folder / "validate.sql").read_text(encoding="utf-8"),
        ]
    )


def _state(paths: Sequence[Path]) -> str:
    texts = []
    for path in paths:
        text = path.read_text(encoding="utf-8")
        as_owner = sources.runs_as_owner(path)
        texts.append(_BECOME_OWNER + text + _BECOME_INSTALLER if as_owner else text)
    return "\n".join(texts)


def _steps_since(former: str) -> list[Path]:
    revisions = sources.revisions()
    later = revisions[revisions.index(former) :]
    return [path for before, after in pairwise(later) for path in sources.step_files(before, after)]


def _below(destdir: str, path: Path) -> Path:
    return Path(destdir + str(path))


def _write(path: Path, text: str) -> None:
    for folder in reversed(path.parents):
        if not folder.exists():
            folder.mkdir()
            # The server's account must be able to read them, whatever the umask.
            folder.chmod(0o755)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)


if __name__ == "__main__":
    sys.exit(main())
