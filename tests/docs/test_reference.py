"""The pages of docs/reference/ say what the database, the program and the docstrings say."""

from __future__ import annotations

from typing import Any

import psycopg

from tests.docs.reference.command_line import command_line_page
from tests.docs.reference.python import python_page
from tests.docs.reference.sql import sql_page
from tests.docs.renewal import check_current
from tests.documents import FOLDER


def test_sql_is_current(db: psycopg.Connection[Any]) -> None:
    check_current(FOLDER / "reference" / "sql.md", sql_page(db))


def test_the_command_line_is_current() -> None:
    check_current(FOLDER / "reference" / "command-line.md", command_line_page())


def test_python_is_current() -> None:
    check_current(FOLDER / "reference" / "python.md", python_page())
