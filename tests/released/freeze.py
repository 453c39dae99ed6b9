"""Freezes the present version, before the number is raised: `python -m tests.released.freeze`.

What lies here is the part of a release's wheel that puts the plugin into a database, packed tight:
`tests/lifecycle/test_upgrades.py` installs every one of them with its own code and upgrades it.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pg_mdistinct

FOLDER = Path(__file__).parent
_NEEDED = tuple(
    f"pg_mdistinct/{name}"
    for name in ("__init__.py", "resources.py", "_resources/", "core/", "install/", "server/")
)


def freeze(wheel: Path) -> Path:
    """Pack what is needed of a wheel, and return where it is."""
    target = FOLDER / f"pg_mdistinct-{wheel.name.split('-')[1]}.tar.xz"
    with zipfile.ZipFile(wheel) as source, tarfile.open(target, "w:xz", preset=9) as packed:
        for name in sorted(source.namelist()):
            if name.startswith(_NEEDED):
                content = source.read(name)
                # No time stamp, no owner: the same wheel gives the same file.
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                packed.addfile(entry, io.BytesIO(content))
    return target


def main() -> None:
    """Build the wheel of the present version and freeze it."""
    with tempfile.TemporaryDirectory() as folder:
        build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
        root = Path(pg_mdistinct.__file__).parents[1]
        subprocess.run([*build, "--directory", folder], cwd=root, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        sys.stdout.write(f"{freeze(wheel)}\n")


if __name__ == "__main__":
    main()
