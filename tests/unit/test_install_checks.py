from __future__ import annotations

from dataclasses import replace

import pytest

from pg_mdistinct.install.checks import (
    DatabaseFacts,
    PythonFacts,
    database_problems,
    python_problems,
)
from pg_mdistinct.install.connect import normalized
from pg_mdistinct.install.errors import NotReadyError

READY = DatabaseFacts(
    database="clinic", user="ann", superuser=True, major=15, standby=False, plpython=True
)
PYTHON = PythonFacts((3, 11, 2), {"numpy": "1.24.2", "numba": "0.56.4"})


def test_a_complete_server_has_no_problems() -> None:
    assert database_problems(READY) == []
    assert python_problems(PYTHON, 15) == []
    assert str(PYTHON) == "Python 3.11.2, numpy 1.24.2, numba 0.56.4"


def test_an_old_server() -> None:
    (problem,) = database_problems(replace(READY, major=13))
    assert "PostgreSQL 13 is too old" in problem.message
    assert "14 or later" in problem.hint


def test_not_a_superuser() -> None:
    (problem,) = database_problems(replace(READY, superuser=False))
    assert "ann is not a superuser" in problem.message
    assert "ALTER ROLE ann SUPERUSER" in problem.hint


def test_a_standby() -> None:
    (problem,) = database_problems(replace(READY, standby=True))
    assert "primary" in problem.hint


def test_missing_plpython_names_the_package_of_the_server_version() -> None:
    (problem,) = database_problems(replace(READY, plpython=False, major=16))
    assert "apt-get install postgresql-plpython3-16" in problem.hint


@pytest.mark.parametrize("version", [(3, 12, 0), (3, 13, 5), (4, 0, 0)])
def test_a_later_python_will_do(version: tuple[int, ...]) -> None:
    assert python_problems(replace(PYTHON, version=version), 15) == []


def test_an_old_python() -> None:
    (problem,) = python_problems(replace(PYTHON, version=(3, 9, 2)), 14)
    assert "Python 3.9.2" in problem.message
    assert "postgresql-plpython3-14" in problem.hint
    assert "3.11" in problem.hint


@pytest.mark.parametrize("missing", [["numpy"], ["numba"], ["numpy", "numba"]])
def test_missing_modules_are_named(missing: list[str]) -> None:
    modules = {name: None if name in missing else "1.0" for name in ("numpy", "numba")}
    (problem,) = python_problems(replace(PYTHON, modules=modules), 15)
    assert problem.message.endswith(f"cannot import {' and '.join(missing)}")
    assert "apt-get install python3-numpy python3-numba" in problem.hint


def test_all_problems_are_told_at_once() -> None:
    problems = database_problems(replace(READY, superuser=False, plpython=False))
    error = NotReadyError(problems)
    for problem in problems:
        assert problem.message in str(error)
        assert problem.hint in error.hint


def test_the_spelling_of_sqlalchemy_is_understood() -> None:
    assert normalized("postgresql+psycopg://ann@db/clinic") == "postgresql://ann@db/clinic"
    assert normalized("host=db dbname=clinic") == "host=db dbname=clinic"
