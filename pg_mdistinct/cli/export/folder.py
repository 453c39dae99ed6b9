"""A folder that appears complete or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import click


@contextmanager
def new_folder(target: Path, may_replace: Collection[str] | None) -> Iterator[Path]:
    """A folder to fill, which becomes the target in one step when the block ends well.

    A target that exists is refused; with `may_replace` only one that holds other files than these.
    """
    try:
        _refuse(target, may_replace)
        fresh = _beside(target, "new")
        fresh.mkdir()
    except OSError as error:
        raise click.ClickException(f"cannot write {target}: {error.strerror}") from error
    try:
        yield fresh
        for path in (*fresh.iterdir(), fresh):
            _sync(path)
        # Looked at again: somebody may have put something there meanwhile.
        _refuse(target, may_replace)
        _put_in_place(fresh, target)
        _sync(target.absolute().parent)
    except OSError as error:
        raise click.ClickException(f"cannot write {target}: {error.strerror}") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _refuse(target: Path, may_replace: Collection[str] | None) -> None:
    if not (target.exists() or target.is_symlink()):
        return
    if may_replace is None:
        raise click.ClickException(f"{target} exists; --force replaces an export that is there")
    if target.is_symlink() or not target.is_dir():
        raise click.ClickException(f"{target} is no folder")
    # Not even --force removes what was never an export.
    if foreign := sorted({path.name for path in target.iterdir()} - set(may_replace)):
        raise click.ClickException(f"{target} is no export: it holds {foreign[0]}")


def _put_in_place(fresh: Path, target: Path) -> None:
    if not target.exists():
        fresh.rename(target)
        return
    former = _beside(target, "old")
    target.rename(former)
    try:
        fresh.rename(target)
    except OSError:
        former.rename(target)
        raise
    shutil.rmtree(former)


def _beside(target: Path, what: str) -> Path:
    """A hidden name in the same folder, so that renaming does not copy."""
    whole = target.absolute()
    return whole.with_name(f".{whole.name}.{what}-{secrets.token_hex(4)}")


def _sync(path: Path) -> None:
    """Has the disk hold a file or folder before it is said to be there."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
