from __future__ import annotations

import stat
from pathlib import Path

import pytest

from pg_mdistinct.install import on_server

FILES = {
    "pg_mdistinct/__init__.py": "version = 1\n",
    "pg_mdistinct/core/__init__.py": "",
    "pg_mdistinct/core/split.py": "δ = 1\n",
    "pg_mdistinct/server/__init__.py": "",
}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "pg_mdistinct"


def read(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*.py")
    }


def test_probe_tells_versions_and_what_is_missing() -> None:
    answer = on_server.probe(["numpy", "no_such_module"])
    modules = answer["modules"]
    assert isinstance(modules, dict)
    assert modules["no_such_module"] is None
    assert modules["numpy"]


def test_code_is_written_for_the_server_alone(base: Path) -> None:
    assert on_server.write_code(str(base), "1.0", FILES)
    assert read(base / "1.0") == FILES
    for path in (base, *(base / "1.0").rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_the_same_code_is_left_alone(base: Path) -> None:
    on_server.write_code(str(base), "1.0", FILES)
    before = (base / "1.0").stat().st_ino
    assert not on_server.write_code(str(base), "1.0", FILES)
    assert (base / "1.0").stat().st_ino == before


def test_other_code_replaces_it_whole(base: Path) -> None:
    on_server.write_code(str(base), "1.0", FILES)
    other = {"pg_mdistinct/__init__.py": "version = 2\n"}
    assert on_server.write_code(str(base), "1.0", other)
    assert read(base / "1.0") == other
    assert sorted(path.name for path in base.iterdir()) == ["1.0"]


def test_compiled_code_of_an_unchanged_package_is_kept(base: Path) -> None:
    on_server.write_code(str(base), "1.0", FILES)
    core, server = (base / "1.0" / "pg_mdistinct" / name for name in ("core", "server"))
    for package in (core, server):
        (package / "__pycache__").mkdir()
        (package / "__pycache__" / "kernel.nbc").write_bytes(b"compiled")
    stamp = (core / "split.py").stat().st_mtime_ns
    on_server.write_code(str(base), "1.0", {**FILES, "pg_mdistinct/server/__init__.py": "x = 1"})
    assert (core / "__pycache__" / "kernel.nbc").read_bytes() == b"compiled"
    assert (core / "split.py").stat().st_mtime_ns == stamp
    assert not (server / "__pycache__").exists()


def test_a_failure_leaves_the_former_code(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_server.write_code(str(base), "1.0", FILES)

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(on_server, "_write", full)
    with pytest.raises(OSError, match="no space"):
        on_server.write_code(str(base), "1.0", {"pg_mdistinct/__init__.py": ""})
    assert read(base / "1.0") == FILES
    monkeypatch.undo()
    on_server.write_code(str(base), "1.0", FILES)
    assert sorted(path.name for path in base.iterdir()) == ["1.0"]


def test_versions_are_listed_and_removed(base: Path) -> None:
    assert on_server.list_code(str(base)) == []
    for version in ("1.0", "1.1"):
        on_server.write_code(str(base), version, FILES)
    assert on_server.list_code(str(base)) == ["1.0", "1.1"]
    on_server.remove_code(str(base), ["1.0"])
    assert on_server.list_code(str(base)) == ["1.1"]
    on_server.remove_code(str(base), ["1.1"])
    assert not base.exists()
