"""The image: what it honours, what is in it, how it stops."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import psycopg
import pytest

from pg_mdistinct import Client
from pg_mdistinct.demo import hospital as paper
from tests import documents
from tests.fix_database import Connection, acting_as

if TYPE_CHECKING:
    from pg_mdistinct.testing import MdistinctContainer

EXAMPLE = Path(__file__).parents[2] / "docker" / "initdb.d" / "hospital.sql"
PASSWORD = 'it\'s "quoted" $HOME'
DATABASE = "Dr. O'Hara"
PGDATA = "/var/lib/postgresql/elsewhere/data"
ZONE = "Asia/Kolkata"


def value(connection: Connection, query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def health(container: MdistinctContainer) -> str:
    container.reload()
    return str(container.get_wrapped_container().attrs["State"]["Health"]["Status"])


def test_example_is_the_hospital_of_the_paper(db: Connection) -> None:
    # Where pg_cron is missing, as it is in this database, nothing can be scheduled.
    text, schedule, _ = EXAMPLE.read_text().rpartition("SELECT mdistinct_schedule")
    assert schedule
    db.execute(text.encode())
    assert db.execute("SELECT * FROM hospital").fetchall() == list(paper.SNAPSHOTS[0])
    rows = db.execute("SELECT old_value, new_value FROM mdistinct.updates").fetchall()
    declared = {(old, new) for old, values in paper.UPDATES.items() for new in values}
    assert set(rows) == declared
    assert value(db, "SELECT records FROM mdistinct.releases") == len(paper.SNAPSHOTS[0])


@pytest.fixture(scope="module")
def container(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MdistinctContainer]:
    """A container that sets everything that can be set."""
    from pg_mdistinct.testing import MdistinctContainer

    folder = tmp_path_factory.mktemp("image")
    folder.chmod(0o755)
    (folder / "password").write_text(PASSWORD + "\n")
    (folder / "2_script.sh").write_text('psql -U "$POSTGRES_USER" -c "INSERT INTO init VALUES (2)"')
    (folder / "1_table.sql").write_text("CREATE TABLE init AS SELECT 1 AS step;")
    (folder / "3_hospital.sql").write_text(EXAMPLE.read_text())
    made = MdistinctContainer(
        pytestconfig.getoption("--image"),
        username="chief",
        password=PASSWORD,
        dbname=DATABASE,
        settings={"cron.timezone": ZONE},
    )
    del made.env["POSTGRES_PASSWORD"]
    made.with_envs(POSTGRES_PASSWORD_FILE="/run/password", PGDATA=PGDATA, PGDATABASE=DATABASE)
    made.with_volume_mapping(folder / "password", "/run/password")
    for script in folder.glob("[0-9]*"):
        made.with_volume_mapping(script, f"/docker-entrypoint-initdb.d/{script.name}")
    made.with_kwargs(cap_drop=["ALL"], security_opt=["no-new-privileges"])
    with made:
        yield made


@pytest.fixture
def connection(container: MdistinctContainer) -> Iterator[Connection]:
    with psycopg.connect(container.dsn(), autocommit=True) as connection:
        yield connection


@pytest.mark.image
def test_settings_of_the_official_image_are_honoured(connection: Connection) -> None:
    assert value(connection, "SELECT current_user || '@' || current_database()") == (
        f"chief@{DATABASE}"
    )
    assert value(connection, "SHOW data_directory") == PGDATA
    assert value(connection, "SELECT array_agg(step) FROM init") == [1, 2]


@pytest.mark.image
def test_nobody_comes_in_without_the_password(container: MdistinctContainer) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(container.dsn(password="wrong"))


@pytest.mark.image
def test_plugin_is_in_the_default_database(connection: Connection) -> None:
    assert value(connection, "SELECT records FROM mdistinct.releases") == 6
    assert connection.execute("SELECT * FROM mdistinct_verify('hospital')").fetchall() == []
    assert value(connection, "SELECT dataset FROM mdistinct.schedule") == "hospital"


@pytest.mark.image
def test_next_run_is_reckoned_in_the_zone_of_pg_cron(connection: Connection) -> None:
    version = value(connection, "SELECT extversion FROM pg_extension WHERE extname = 'pg_cron'")
    # Older versions do not know the setting, whatever somebody has written there.
    zone = "UTC" if version.startswith("1.4") else ZONE
    with acting_as(connection, "mdistinct_admin"):
        moment = value(connection, "SELECT next_run FROM mdistinct.schedule")
        assert f"{moment.astimezone(ZoneInfo(zone)):%H:%M}" == "02:00"
        assert value(connection, "SELECT mdistinct_schedule('hospital', '0 2 * * *')") == moment


@pytest.mark.image
def test_other_databases_take_the_extension(
    container: MdistinctContainer, connection: Connection
) -> None:
    connection.execute("CREATE DATABASE other TEMPLATE template0")
    with psycopg.connect(container.dsn("other"), autocommit=True) as other:
        other.execute("CREATE EXTENSION pg_mdistinct CASCADE")
        text, _, _ = EXAMPLE.read_text().rpartition("SELECT mdistinct_schedule")
        other.execute(text.encode())
        assert other.execute("SELECT * FROM mdistinct_verify('hospital')").fetchall() == []
    # The code is the same, compiled already, and none of it was compiled again elsewhere.
    assert container.exec("test -e /var/lib/postgresql/.cache").exit_code == 1


@pytest.mark.image
def test_server_is_unprivileged_and_healthy(container: MdistinctContainer) -> None:
    assert container.exec("id -un").output.strip() == b"postgres"
    assert container.exec("stat -c %U /proc/1").output.strip() == b"postgres"
    deadline = time.monotonic() + 60
    while health(container) != "healthy":
        assert time.monotonic() < deadline
        time.sleep(0.5)


@pytest.mark.image
@pytest.mark.parametrize("signal", ["SIGTERM", "SIGINT"])
def test_a_signal_stops_it_cleanly_and_its_data_stay(
    container: MdistinctContainer, signal: str
) -> None:
    wrapped = container.get_wrapped_container()
    # A client that stays would keep PostgreSQL's own SIGTERM waiting.
    with psycopg.connect(container.dsn(), autocommit=True) as client:
        wrapped.kill(signal)
        assert wrapped.wait(timeout=30)["StatusCode"] == 0
        assert b"database system is shut down" in wrapped.logs(tail=3)
        with pytest.raises(psycopg.OperationalError):
            client.execute("SELECT 1")
    container.start_again()
    with Client(container.dsn()) as again:
        assert again.publish("hospital").release >= 2


@pytest.mark.image
def test_without_a_password_it_says_what_to_do(pytestconfig: pytest.Config) -> None:
    from testcontainers.core.container import DockerContainer

    with DockerContainer(pytestconfig.getoption("--image")) as container:
        assert container.get_wrapped_container().wait(timeout=30)["StatusCode"] == 1
        assert b"set POSTGRES_PASSWORD" in container.get_logs()[1]


@pytest.mark.image
def test_a_failed_first_start_keeps_nothing(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    from testcontainers.core.container import DockerContainer

    script = tmp_path / "broken.sql"
    script.write_text("SELECT 1 / 0;")
    tmp_path.chmod(0o755)
    container = DockerContainer(pytestconfig.getoption("--image")).with_env(
        "POSTGRES_PASSWORD", "secret"
    )
    container.with_volume_mapping(script, "/docker-entrypoint-initdb.d/broken.sql")
    with container:
        wrapped = container.get_wrapped_container()
        for _ in range(2):
            # The second time as the first: the data folder is empty again.
            assert wrapped.wait(timeout=120)["StatusCode"] == 3
            assert b"division by zero" in wrapped.logs(tail=5)
            wrapped.start()


@pytest.mark.image
def test_the_guide_to_scheduling(connection: Connection) -> None:
    blocks = [block.text for block in documents.blocks("scheduling.md") if block.language == "sql"]
    assert len(blocks) == 4
    connection.execute("CREATE DATABASE hospital TEMPLATE template0")
    for text in blocks:
        connection.execute(text.encode())
    jobs = connection.execute("SELECT database, username FROM cron.job").fetchall()
    assert jobs == [("hospital", "mdistinct_scheduler")]
    connection.execute("SELECT cron.unschedule(jobid) FROM cron.job")
    connection.execute("SELECT mdistinct_schedule('hospital', '0 2 * * *')")
