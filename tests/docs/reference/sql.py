"""The SQL interface, from the comments in a database."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from tests.docs.reference.markdown import page, sentence, table

Connection = psycopg.Connection[Any]

_DESCRIBED = re.compile(r"^- (\w+): (.*)$", re.MULTILINE)
_ROLES = ("mdistinct_reader", "mdistinct_publisher", "mdistinct_admin")


def sql_page(db: Connection) -> str:
    """Functions, relations and roles, from a database with the plugin and nothing else."""
    return page(
        "SQL reference",
        "the comments in the database",
        "Functions are called without a schema. The roles named are those that may, beside the "
        "superusers and whoever is a member of them; `mdistinct_admin` is a member of the others.",
        "## Functions",
        *(part for function in _functions(db) for part in function.parts()),
        "## Relations",
        *_relations(db),
        "## What is made for each dataset",
        *_PER_DATASET,
        "## Roles",
        table(("role", ""), [(f"`{name}`", words) for name, words in _query(db, _SQL_ROLES)]),
    )


@dataclass(frozen=True)
class _Function:
    name: str
    kind: str
    arguments: list[tuple[str, str, str]]
    returns: str
    columns: list[tuple[str, str]]
    roles: list[str]
    comment: str

    def parts(self) -> Iterator[str]:
        """Its section."""
        words, described = _described(self.comment)
        names = [*(name for name, *_ in self.arguments), *(name for name, _ in self.columns)]
        assert sorted(described) == sorted(names), f"the comment of {self.name} does not fit it"
        given = ", ".join(
            f"{name} => …" if default else name for name, _, default in self.arguments
        )
        yield f"### {self.name}"
        yield f"`CALL {self.name}()`" if self.kind == "p" else f"`{self.name}({given})`"
        yield sentence(words)
        yield table(
            ("argument", "type", "default", ""),
            [
                (f"`{name}`", f"`{kind}`", default and f"`{default}`", described[name])
                for name, kind, default in self.arguments
            ],
        )
        yield table(
            ("column", "type", ""),
            [(f"`{name}`", f"`{kind}`", described[name]) for name, kind in self.columns],
        )
        if self.returns and not self.columns:
            yield f"Returns {self.returns}."
        yield f"For {', '.join(f'`{role}`' for role in self.roles)}."


_SQL_FUNCTIONS = """
SELECT p.proname, p.prokind, p.proargnames, p.proargmodes::text[],
    ARRAY(SELECT format_type(t, NULL)
          FROM unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) WITH ORDINALITY AS a (t, n)
          ORDER BY n),
    ARRAY(SELECT coalesce(pg_get_function_arg_default(p.oid, n), '')
          FROM generate_series(1, p.pronargs) AS n),
    p.prorettype::regtype::text,
    ARRAY(SELECT r FROM unnest(%s::text[]) AS r
          WHERE EXISTS (SELECT FROM aclexplode(p.proacl) AS g
                        WHERE g.grantee = r::regrole AND g.privilege_type = 'EXECUTE')),
    obj_description(p.oid, 'pg_proc')
FROM pg_proc AS p
WHERE p.pronamespace = 'public'::regnamespace AND p.proname LIKE 'mdistinct\\_%%'
ORDER BY p.proname
"""

_SQL_RELATIONS = """
SELECT c.oid, n.nspname || '.' || c.relname,
    CASE c.relkind WHEN 'v' THEN 'view' WHEN 'r' THEN 'table' ELSE 'type' END,
    ARRAY(SELECT r FROM unnest(%s::text[]) AS r
          WHERE EXISTS (SELECT FROM aclexplode(c.relacl) AS g
                        WHERE g.grantee = r::regrole AND g.privilege_type = 'SELECT')),
    coalesce(obj_description(c.oid, 'pg_class'), obj_description(c.reltype, 'pg_type'))
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname IN ('mdistinct', 'mdistinct_published') AND c.relkind IN ('r', 'v', 'c')
    AND c.relname <> 'alembic_version'
ORDER BY n.nspname DESC, c.relname
"""

_SQL_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), col_description(a.attrelid, a.attnum)
FROM pg_attribute AS a
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""

_SQL_ROLES = """
SELECT r.rolname, shobj_description(r.oid, 'pg_authid')
FROM pg_roles AS r WHERE r.rolname LIKE 'mdistinct\\_%' ORDER BY r.rolname
"""

_PER_DATASET = (
    "Of a dataset `d`, whose columns have the names of the source's:",
    """\
| relation | columns | for |
|---|---|---|
| `mdistinct_published.d` | `release`, `gid`, the QI columns as ranges or sets, the sensitive column | `mdistinct_reader` |
| `mdistinct_published.d_counterfeits` | `release`, `gid`, `count`: the groups that hold counterfeits, and how many | `mdistinct_reader` |
| `mdistinct.d_membership` | `release`, `record_id`, `gid`: who is in which group; real records only | `mdistinct_admin` |""",  # noqa: E501
    """\
| type of a QI column | published as |
|---|---|
| `smallint`, `integer` | `int4range` |
| `bigint` | `int8range` |
| `numeric`, `real`, `double precision` | `numrange` |
| `date` | `daterange` |
| `timestamp`, `timestamp with time zone` | `tsrange`, `tstzrange` |
| any other | `text[]`, the sorted set of the group's values |""",
)


def _functions(db: Connection) -> Iterator[_Function]:
    for name, kind, names, modes, types, defaults, returns, roles, comment in _query(
        db, _SQL_FUNCTIONS, (list(_ROLES),)
    ):
        shown = list(zip(names or (), modes or ["i"] * len(names or ()), types, strict=False))
        given = [(n, t) for n, mode, t in shown if mode in "ib"]
        columns = [(n, t) for n, mode, t in shown if mode in "ot"]
        yield _Function(
            name,
            kind,
            [
                # A default is shown as one would write it, without the type that PostgreSQL adds.
                (n, t, default.partition("::")[0])
                for (n, t), default in zip(given, defaults, strict=True)
            ],
            "" if returns == "void" or kind == "p" else f"`{returns}`",
            columns,
            roles,
            comment,
        )


def _relations(db: Connection) -> Iterator[str]:
    for oid, name, kind, roles, comment in _query(db, _SQL_RELATIONS, (list(_ROLES),)):
        columns = _query(db, _SQL_COLUMNS, (oid,))
        silent = [n for n, _, words in columns if not words]
        assert not silent, f"columns of {name} without a comment: {', '.join(silent)}"
        yield f"### {name}"
        yield sentence(f"{kind.capitalize()}. {comment}")
        yield table(
            ("column", "type", ""),
            [(f"`{n}`", f"`{t}`", words) for n, t, words in columns],
        )
        if roles:
            yield f"For {', '.join(f'`{role}`' for role in roles)}."


def _described(comment: str) -> tuple[str, dict[str, str]]:
    """What a comment says of the whole, and of arguments and columns in lines of their own."""
    return _DESCRIBED.sub("", comment).strip(), dict(_DESCRIBED.findall(comment))


def _query(db: Connection, statement: str, given: Sequence[object] | None = None) -> list[Any]:
    return db.execute(statement.encode(), given).fetchall()
