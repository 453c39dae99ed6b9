"""The embedded server, really started, killed and obstructed."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

import pg_mdistinct
from pg_mdistinct.cli import main
from pg_mdistinct.embedded import EmbeddedServer, EmbeddedServerError, launch
from pg_mdistinct.embedded.postmaster import is_postmaster

pytestmark = pytest.mark.embedded

NewServer = Callable[..., EmbeddedServer]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root drops privileges")


def ask(dsn: str, query: str) -> object:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def pid_of(server: EmbeddedServer) -> int:
    pid = server.status().pid
    assert pid is not None
    return pid


def kill(server: EmbeddedServer) -> int:
    """Kills the postmaster as a crash would; its backends may live on for a moment."""
    pid = pid_of(server)
    os.kill(pid, signal.SIGKILL)
    while is_postmaster(pid, server.home / "data"):
        time.sleep(0.01)
    return pid


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that every account can enter, unlike pytest's own temporary ones."""
    folder = Path(tempfile.mkdtemp(prefix="mdistinct-test-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def base() -> Iterator[Path]:
    with open_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def running() -> Iterator[EmbeddedServer]:
    """A server to look at."""
    with open_folder() as folder:
        server = EmbeddedServer(folder / "home", throwaway=True)
        server.start()
        yield server
        server.stop()


@pytest.fixture(scope="module")
def stopped_home() -> Iterator[Path]:
    """The home of a server that ran before: copying it is quicker than making another."""
    with open_folder() as folder:
        server = EmbeddedServer(folder / "home")
        server.start()
        server.stop()
        yield server.home


@pytest.fixture
def new_server(base: Path) -> Iterator[NewServer]:
    """Makes throwaway servers that do not outlive the test."""
    made: list[EmbeddedServer] = []

    def make(name: str = "home") -> EmbeddedServer:
        made.append(EmbeddedServer(base / name, throwaway=True))
        return made[-1]

    yield make
    for server in made:
        server.stop()


@pytest.fixture
def kept(base: Path, stopped_home: Path) -> Iterator[EmbeddedServer]:
    """A server with data to be kept, which has run before."""
    subprocess.run(["cp", "-a", str(stopped_home), str(base / "kept")], check=True)
    server = EmbeddedServer(base / "kept")
    yield server
    server.stop()


def test_start_gives_a_database_with_plpython(running: EmbeddedServer) -> None:
    dsn = running.dsn()
    assert ask(dsn, "SELECT current_database()") == "mdistinct"
    assert ask(dsn, "SHOW server_encoding") == "UTF8"
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE EXTENSION plpython3u")
        connection.execute(
            "CREATE FUNCTION numpy_prefix() RETURNS text LANGUAGE plpython3u "
            "AS 'import sys, numpy; return sys.prefix'"
        )
        # Debian's interpreter, whatever virtual environment this test runs in.
        row = connection.execute("SELECT numpy_prefix()").fetchone()
    assert row == ("/usr",)


def test_dsn_works_for_every_database(running: EmbeddedServer) -> None:
    dsn = running.dsn()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute('CREATE DATABASE "a b/c?d%"')
    assert ask(running.dsn("a b/c?d%"), "SELECT current_database()") == "a b/c?d%"


def test_start_and_stop_are_idempotent(new_server: NewServer) -> None:
    server = new_server()
    dsn = server.start()
    pid = pid_of(server)
    assert server.start() == dsn
    assert pid_of(server) == pid
    assert server.stop() is True
    assert server.stop() is False
    assert server.status().running is False


def test_two_starts_at_once_give_one_server(base: Path, new_server: NewServer) -> None:
    new_server()
    command = [sys.executable, "-m", "pg_mdistinct.cli", "server", "start", "--throwaway"]

    def start(_: int) -> str:
        done = subprocess.run(
            [*command, "--home", str(base / "home")], check=True, capture_output=True, text=True
        )
        return done.stdout.splitlines()[-1]

    with ThreadPoolExecutor(3) as pool:
        dsns = set(pool.map(start, range(3)))
    assert len(dsns) == 1
    assert ask(dsns.pop(), "SELECT 1") == 1


def test_data_and_port_survive_a_restart(kept: EmbeddedServer) -> None:
    dsn = kept.start()
    assert ask(dsn, "SHOW fsync") == "on"
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    kept.stop()
    assert kept.start() == dsn
    assert ask(dsn, "SELECT answer FROM kept") == 42


def test_a_throwaway_server_leaves_nothing_behind(new_server: NewServer) -> None:
    server = new_server()
    dsn = server.start()
    assert ask(dsn, "SHOW fsync") == "off"
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    assert ask(server.restart(), "SELECT answer FROM kept") == 42
    server.stop()
    assert not server.home.exists()


def test_stopping_a_throwaway_server_spares_the_files_of_others(
    base: Path, new_server: NewServer
) -> None:
    (base / "home").mkdir()
    (base / "home").chmod(0o755)
    (base / "home" / "thesis.txt").touch()
    server = new_server()
    server.start()
    server.stop()
    assert [path.name for path in server.home.iterdir()] == ["thesis.txt"]


def test_kept_data_is_not_started_without_fsync(kept: EmbeddedServer) -> None:
    with pytest.raises(EmbeddedServerError, match="is to be kept"):
        EmbeddedServer(kept.home, throwaway=True).start()


def test_a_killed_server_comes_back_with_its_data(kept: EmbeddedServer) -> None:
    dsn = kept.start()
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    kill(kept)
    assert kept.status().running is False
    assert ask(kept.start(), "SELECT answer FROM kept") == 42


def test_a_busy_backend_of_a_killed_server_is_waited_for(kept: EmbeddedServer) -> None:
    dsn = kept.start()
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE EXTENSION plpython3u")
        connection.execute(
            "CREATE FUNCTION busy() RETURNS void LANGUAGE plpython3u AS $$\n"
            "import os, time\n"
            "while not os.path.exists('enough'):\n"
            "    time.sleep(0.01)\n$$"
        )
    # A backend inside PL/Python does not notice that its postmaster is gone.
    script = "import psycopg, sys; psycopg.connect(sys.argv[1]).execute('SELECT busy()')"
    client = subprocess.Popen([sys.executable, "-c", script, dsn], stderr=subprocess.DEVNULL)
    activity = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT busy()'"
    while ask(dsn, activity) == 0:
        time.sleep(0.02)
    kill(kept)
    with ThreadPoolExecutor() as pool:
        starting = pool.submit(kept.start)
        try:
            with pytest.raises(TimeoutError):
                starting.result(1)
        finally:
            # A server process works in the data folder.
            (kept.home / "data" / "enough").touch()
        dsn = starting.result(60)
    assert ask(dsn, "SELECT 1") == 1
    client.wait()


@pytest.mark.parametrize("recycled", [True, False], ids=["recycled", "gone"])
def test_a_stale_pid_file_does_no_harm(kept: EmbeddedServer, recycled: bool) -> None:
    kept.start()
    owner = (kept.home / "data").stat().st_uid
    pid = kill(kept)
    # A process of the server's own account is what PostgreSQL itself stumbles over.
    bystander = subprocess.Popen(["sleep", "60"], user=owner if os.geteuid() == 0 else None)
    pid_file = kept.home / "data" / "postmaster.pid"
    if recycled:
        pid_file.write_text(pid_file.read_text().replace(str(pid), str(bystander.pid), 1))
        for lock in (kept.home / "run").glob("*.lock"):
            lock.write_text(lock.read_text().replace(str(pid), str(bystander.pid), 1))
    try:
        assert kept.status().running is False
        assert kept.stop() is False
        assert ask(kept.start(), "SELECT 1") == 1
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_an_occupied_port_is_avoided(kept: EmbeddedServer) -> None:
    kept.start()
    port = kept.status().port
    kept.stop()
    with socket.create_server(("127.0.0.1", port or 0)):
        dsn = kept.start()
        assert kept.status().port != port
        assert ask(dsn, "SELECT 1") == 1


def test_a_port_that_is_taken_at_the_last_moment_is_avoided(
    new_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        taken = occupied.getsockname()[1]
        ports = iter([taken, taken])
        monkeypatch.setattr(
            launch, "free_port", lambda *_: next(ports, None) or find_another(taken)
        )
        server = new_server()
        assert ask(server.start(), "SELECT 1") == 1
        assert server.status().port != taken


def find_another(taken: int) -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    assert port != taken
    return port


def test_an_interrupted_initdb_is_begun_again(base: Path, new_server: NewServer) -> None:
    unfinished = base / "home" / "data.unfinished"
    unfinished.mkdir(parents=True)
    (unfinished / "PG_VERSION").write_text("15\n")
    server = new_server()
    assert ask(server.start(), "SELECT 1") == 1
    assert not unfinished.exists()


@pytest.mark.parametrize("missing", ["PG_VERSION", "global/pg_control"])
def test_half_a_data_folder_is_set_aside(kept: EmbeddedServer, missing: str) -> None:
    (kept.home / "data" / missing).unlink()
    assert ask(kept.start(), "SELECT 1") == 1
    aside = [path for path in kept.home.iterdir() if path.name.startswith("data.broken-")]
    assert len(aside) == 1


def test_data_of_another_major_version_is_refused(kept: EmbeddedServer) -> None:
    (kept.home / "data" / "PG_VERSION").write_text("13\n")
    with pytest.raises(EmbeddedServerError, match="was made by PostgreSQL 13") as caught:
        kept.start()
    assert "postgresql-plpython3-13" in (caught.value.hint or "")


def test_a_server_that_does_not_start_shows_its_log(kept: EmbeddedServer) -> None:
    with (kept.home / "data" / "postgresql.conf").open("a") as settings:
        settings.write("shared_buffers = 'much'\n")
    with pytest.raises(EmbeddedServerError, match=r'invalid value for parameter "shared_buffers"'):
        kept.start()


@pytest.mark.parametrize(
    "name", ["a 'b' \"c\" $HOME %s @", "one, two", "deep" * 50], ids=["odd", "comma", "deep"]
)
def test_any_path_will_do(new_server: NewServer, name: str) -> None:
    server = new_server(name)
    assert ask(server.start(), "SELECT 1") == 1


def test_nobody_else_can_enter(running: EmbeddedServer) -> None:
    for name in ("data", "run"):
        assert (running.home / name).stat().st_mode & 0o077 == 0
    assert (running.home / "pgpass").stat().st_mode & 0o077 == 0


def test_tcp_asks_for_the_password(
    running: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tcp = f"host=127.0.0.1 port={running.status().port} user=postgres dbname=mdistinct"
    monkeypatch.setenv("PGPASSFILE", "/nonexistent")
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        psycopg.connect(tcp)
    # libpq takes no password file that belongs to somebody else, root excepted.
    password = (running.home / "pgpass").read_text().strip().rsplit(":", 1)[1]
    assert ask(f"{tcp} password={password}", "SELECT 1") == 1


def test_the_command_line(base: Path) -> None:
    runner = CliRunner()
    home = ["--home", str(base / "home")]
    assert runner.invoke(main, ["server", "status", *home]).exit_code == 3
    started = runner.invoke(main, ["server", "start", "--throwaway", *home])
    try:
        assert started.exit_code == 0
        dsn = started.stdout.splitlines()[-1]
        assert ask(dsn, "SELECT 1") == 1
        status = runner.invoke(main, ["server", "status", *home])
        assert status.exit_code == 0
        assert status.stdout.startswith("running")
        assert status.stdout.splitlines()[-1] == dsn
    finally:
        stopped = runner.invoke(main, ["server", "stop", *home])
    assert stopped.exit_code == 0
    assert "stopped" in stopped.stderr
    again = runner.invoke(main, ["server", "stop", *home])
    assert again.exit_code == 0
    assert "not running" in again.stderr
    assert runner.invoke(main, ["server", "status", *home]).exit_code == 3


def test_the_command_line_explains_trouble(base: Path) -> None:
    (base / "file").touch()
    failed = CliRunner().invoke(main, ["server", "start", "--home", str(base / "file" / "home")])
    assert failed.exit_code == 1
    assert failed.stderr.startswith("Error: ")


@needs_root
def test_root_drops_privileges(running: EmbeddedServer) -> None:
    owner = Path(f"/proc/{pid_of(running)}").stat().st_uid
    assert pwd.getpwuid(owner).pw_name in ("postgres", "nobody")


@needs_root
def test_root_runs_an_existing_server_as_the_owner_of_its_data(kept: EmbeddedServer) -> None:
    nobody = pwd.getpwnam("nobody")
    for path in (kept.home, *kept.home.rglob("*")):
        os.chown(path, nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)
    kept.start()
    assert Path(f"/proc/{pid_of(kept)}").stat().st_uid == nobody.pw_uid


@needs_root
def test_root_moves_a_home_that_the_server_cannot_enter(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    server = EmbeddedServer(tmp_path / "home", throwaway=True)
    assert server.home.parent == Path("/var/lib/pg-mdistinct")
    try:
        assert ask(server.start(), "SELECT 1") == 1
        assert EmbeddedServer(tmp_path / "home").status().running
    finally:
        server.stop()
    assert not server.home.exists()


ORDINARY_USER = """
from pathlib import Path
import os, sys
from pg_mdistinct.embedded import EmbeddedServer

server = EmbeddedServer(throwaway=False)
assert server.home == Path(sys.argv[1]), server.home
dsn = server.start()
assert server.start() == dsn
assert Path(f"/proc/{server.status().pid}").stat().st_uid == os.getuid() != 0
assert server.stop() and not server.stop()
"""


@needs_root
@pytest.mark.parametrize("checkout", [True, False], ids=["checkout", "wheel"])
def test_an_ordinary_user_runs_it_as_himself(base: Path, checkout: bool) -> None:
    nobody = pwd.getpwnam("nobody")
    project = base / "project"
    package = Path(pg_mdistinct.__file__).parent
    shutil.copytree(package, project / "pg_mdistinct", ignore=shutil.ignore_patterns("core", "_*_"))
    data = base / "data"
    data.mkdir()
    if checkout:
        (project / "pyproject.toml").touch()
    for folder in (project, data):
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    expected = project / ".pg-mdistinct" if checkout else data / "pg-mdistinct"
    # Debian's interpreter, since ours may lie in a folder of root's.
    subprocess.run(
        ["/usr/bin/python3", "-B", "-c", ORDINARY_USER, str(expected)],
        cwd=base,
        env={"PYTHONPATH": str(project), "XDG_DATA_HOME": str(data), "PATH": "/usr/bin:/bin"},
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
        check=True,
    )
    assert expected.stat().st_uid == nobody.pw_uid
