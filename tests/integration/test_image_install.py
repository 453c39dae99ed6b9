"""The image installs without alembic: nobody must be able to tell."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from pg_mdistinct import resources
from pg_mdistinct.install import image, install
from tests.integration.test_catalogs import CATALOGS, catalog

_VERSION_TABLE = """
SELECT c.relowner::regrole::text, c.relacl::text, k.conname, pg_get_constraintdef(k.oid),
    a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, v.version_num
FROM pg_class AS c JOIN pg_constraint AS k ON k.conrelid = c.oid
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
CROSS JOIN mdistinct.alembic_version AS v
WHERE c.oid = 'mdistinct.alembic_version'::regclass AND k.contype = 'p'
"""


def test_latest_revision_is_alembics_head() -> None:
    config = Config()
    config.set_main_option("script_location", str(resources.migrations_dir()))
    assert image.latest_revision() == ScriptDirectory.from_config(config).get_current_head()


def test_the_result_is_that_of_the_installer(new_database: Callable[..., str]) -> None:
    one, other = new_database(), new_database()
    image.install_new(one)
    install(other, on_message=lambda _: None)
    with psycopg.connect(one) as left, psycopg.connect(other) as right:
        for name, query in {**CATALOGS, "version": _VERSION_TABLE}.items():
            found = catalog(left, query)
            assert found == catalog(right, query), name
    messages: list[str] = []
    assert install(one, on_message=messages.append).former_revision == image.latest_revision()


def test_a_database_that_has_the_plugin_is_left_alone(dsn: str) -> None:
    with pytest.raises(psycopg.errors.DuplicateSchema):
        image.install_new(dsn)
