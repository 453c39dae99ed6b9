"""The parts of the embedded server that need no server."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from pg_mdistinct import resources
from pg_mdistinct.embedded import (
    DATABASE,
    EmbeddedServer,
    EmbeddedServerError,
    installation,
    places,
)
from pg_mdistinct.embedded.places import Places
from pg_mdistinct.embedded.ports import free_port
from pg_mdistinct.embedded.postmaster import find_postmaster
from pg_mdistinct.embedded.settings import SETTINGS_FILE, last_port, render_settings


def pretend_programs(root: Path, major: int, *, plpython: bool) -> None:
    bindir = root / "lib" / str(major) / "bin"
    bindir.mkdir(parents=True)
    extensions = root / "share" / str(major) / "extension"
    extensions.mkdir(parents=True)
    script(bindir / "postgres", f"echo 'postgres (PostgreSQL) {major}.1 (Debian)'")
    if plpython:
        (extensions / "plpython3u.control").touch()


def script(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(installation, "_DEBIAN_PROGRAMS", tmp_path / "lib")
    monkeypatch.setattr(installation, "_DEBIAN_SHARE", tmp_path / "share")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return tmp_path


def test_the_newest_installation_with_plpython_is_chosen(programs: Path) -> None:
    pretend_programs(programs, 14, plpython=True)
    pretend_programs(programs, 15, plpython=True)
    pretend_programs(programs, 16, plpython=False)
    assert installation.find_installation().major == 15


def test_an_installation_can_be_asked_for_by_major_version(programs: Path) -> None:
    pretend_programs(programs, 14, plpython=True)
    pretend_programs(programs, 15, plpython=True)
    assert installation.find_installation(14).major == 14


def test_versions_before_14_do_not_count(programs: Path) -> None:
    pretend_programs(programs, 13, plpython=True)
    with pytest.raises(EmbeddedServerError, match=r"14 or newer.*not installed") as caught:
        installation.find_installation()
    assert "postgresql-plpython3" in (caught.value.hint or "")


def test_an_installation_is_found_through_pg_config(programs: Path) -> None:
    own = programs / "own" / "bin"
    own.mkdir(parents=True)
    extensions = programs / "own" / "extension"
    extensions.mkdir()
    (extensions / "plpython3u.control").touch()
    script(own / "postgres", "echo 'postgres (PostgreSQL) 17.2'")
    script(own / "pg_config", f'[ "$1" = --bindir ] && echo "{own}" || echo "{own.parent}"')
    (programs / "path").symlink_to(own)
    assert installation.find_installation() == installation.Installation(17, own)


def test_libraries_are_found_with_and_without_pg_config(programs: Path) -> None:
    found = installation.Installation(15, programs / "bin")
    found.bindir.mkdir()
    assert not found.has_library("pg_cron")
    (programs / "lib").mkdir(exist_ok=True)
    (programs / "lib" / "pg_cron.so").touch()
    assert found.has_library("pg_cron")
    script(found.bindir / "pg_config", f'[ "$1" = --pkglibdir ] && echo "{programs}/elsewhere"')
    assert not found.has_library("pg_cron")
    (programs / "elsewhere").mkdir()
    (programs / "elsewhere" / "pg_cron.so").touch()
    assert found.has_library("pg_cron")


def test_home_is_taken_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PG_MDISTINCT_HOME", str(tmp_path / "chosen"))
    assert places.default_home() == tmp_path / "chosen"


def test_home_lies_in_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PG_MDISTINCT_HOME", raising=False)
    monkeypatch.setattr(places, "checkout_root", lambda: tmp_path)
    assert places.default_home() == tmp_path / ".pg-mdistinct"


def test_home_lies_in_the_users_data_folder_without_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PG_MDISTINCT_HOME", raising=False)
    monkeypatch.setattr(places, "checkout_root", lambda: None)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert places.default_home() == tmp_path / "pg-mdistinct"
    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/ignored")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert places.default_home() == tmp_path / ".local" / "share" / "pg-mdistinct"


def test_a_checkout_of_somebody_else_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PG_MDISTINCT_HOME", raising=False)
    monkeypatch.setattr(places, "checkout_root", lambda: tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    (tmp_path / ".pg-mdistinct").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert places.default_home().parent == Path("/data/pg-mdistinct")


def test_a_throwaway_server_has_a_new_home_each_time() -> None:
    assert EmbeddedServer(throwaway=True).home != EmbeddedServer(throwaway=True).home


def test_sockets_of_a_deep_home_lie_elsewhere() -> None:
    shallow = Places(Path("/home/somebody/project/.pg-mdistinct"))
    assert shallow.sockets == shallow.home / "run"
    deep = Places(Path("/home") / ("deep" * 30) / ".pg-mdistinct")
    assert len(str(deep.sockets / ".s.PGSQL.65535.lock")) < 100
    assert deep.sockets != Places(deep.home / "other").sockets


def test_sockets_have_no_comma_in_their_path() -> None:
    assert "," not in str(Places(Path("/home/one, two")).sockets)


def test_settings_quote_what_needs_it() -> None:
    text = render_settings(Places(Path("/a 'b' \"c\\d")), 5555, throwaway=False)
    assert "unix_socket_directories = '\"/a ''b'' \"\"c\\\\d/run\"'" in text
    assert "fsync" not in text


def test_only_throwaway_servers_do_without_fsync() -> None:
    assert "fsync = 'off'" in render_settings(Places(Path("/a")), 5555, throwaway=True)


def test_the_scheduler_is_loaded_where_it_is_installed() -> None:
    text = render_settings(Places(Path("/a")), 5555, throwaway=False, scheduler=True)
    assert "shared_preload_libraries = 'pg_cron'" in text
    assert f"cron.database_name = '{DATABASE}'" in text
    assert "cron" not in render_settings(Places(Path("/a")), 5555, throwaway=False)


def test_the_port_of_the_last_start_is_remembered(tmp_path: Path) -> None:
    assert last_port(tmp_path) is None
    settings = render_settings(Places(Path("/a")), 5555, throwaway=False)
    (tmp_path / SETTINGS_FILE).write_text(settings)
    assert last_port(tmp_path) == 5555


def test_an_occupied_port_is_not_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        taken = occupied.getsockname()[1]
        assert free_port(taken) not in (0, taken)
    assert free_port(taken) == taken


@pytest.mark.parametrize(
    "content",
    ["", "no number\n", "1\n", f"{os.getpid()}\n"],
    ids=["empty", "words", "init", "ourselves"],
)
def test_a_pid_file_proves_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "postmaster.pid").write_text(content)
    assert find_postmaster(Places(tmp_path)) is None


def test_dsn_of_a_stopped_server_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedServerError, match="is not running"):
        EmbeddedServer(tmp_path / "home").dsn()


def test_stopping_what_is_not_there_makes_no_files(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path / "home")
    assert server.stop() is False
    assert not server.home.exists()


def test_resources_are_found() -> None:
    assert resources.sql_dir().is_dir()
    assert (resources.migrations_dir() / "env.py").is_file()


def test_resources_of_an_installed_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site-packages" / "pg_mdistinct"
    (package / "_resources" / "sql").mkdir(parents=True)
    monkeypatch.setattr(resources, "_PACKAGE", package)
    assert resources.sql_dir() == package / "_resources" / "sql"
    with pytest.raises(FileNotFoundError, match="incomplete"):
        resources.migrations_dir()
