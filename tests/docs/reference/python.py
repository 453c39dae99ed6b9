"""The Python client, from its source: signatures and docstrings."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from itertools import pairwise
from types import ModuleType

from pg_mdistinct.client import (
    async_client,
    calls,
    client,
    connections,
    dataset,
    errors,
    models,
    progress,
    release,
    results,
)
from tests.docs.reference.markdown import flat, page, table


def python_page() -> str:
    """The classes of the client, what they return and what they raise."""
    return page(
        "Python reference",
        "the docstrings",
        "[client.md](../client.md) tells how to use them together. Clients, results and errors are "
        "imported from `pg_mdistinct.client`, the catalog from `pg_mdistinct.client.models`.",
        *_classes(client),
        *_classes(dataset),
        *_classes(release),
        "## For asyncio",
        "What asks the database is awaited; all else is as above.",
        *_classes(async_client, "###", with_methods=False),
        "## Types of arguments",
        table(("type", "", ""), [*_aliases(connections), *_aliases(calls), *_aliases(progress)]),
        "## Results",
        *_classes(results, "###"),
        *_classes(progress, "###"),
        "## Errors",
        *_exceptions(),
        "## The catalog",
        *_classes(models, "###"),
    )


def _classes(module: ModuleType, level: str = "##", *, with_methods: bool = True) -> Iterator[str]:
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.ClassDef) and node.name not in ("Base", "Frame"):
            yield f"{level} {node.name}"
            yield ast.get_docstring(node) or ""
            if fields := list(_fields(node)):
                yield "Fields: " + ", ".join(fields) + "."
            if with_methods:
                yield table(("method", ""), list(_methods(node)))


def _fields(node: ast.ClassDef) -> Iterator[str]:
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            name = part.target.id
            kind = re.sub(r"Mapped\[(.*)\]", r"\1", ast.unparse(part.annotation))
            if not name.startswith("_"):
                yield f"`{name}: {kind}`"


def _methods(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and not part.name.startswith("_"):
            decorators = {ast.unparse(found) for found in part.decorator_list}
            if "classmethod" in decorators:
                continue
            arguments = ast.unparse(part.args).removeprefix("self").removeprefix(", ")
            shown = "" if decorators & {"property", "cached_property"} else f"({arguments})"
            returns = ast.unparse(part.returns) if part.returns else "None"
            arrow = "" if returns == "None" else f" → {returns}"
            yield f"`{part.name}{shown}{arrow}`", flat(ast.get_docstring(part) or "")


def _aliases(module: ModuleType) -> Iterator[tuple[str, str, str]]:
    """Names for types that stand at the top of a module with a docstring of their own."""
    body = ast.parse(inspect.getsource(module)).body
    for part, following in pairwise(body):
        if not isinstance(part, ast.Assign) or not isinstance(following, ast.Expr):
            continue
        words = following.value
        if isinstance(words, ast.Constant) and isinstance(words.value, str):
            (target,) = part.targets
            yield f"`{ast.unparse(target)}`", f"`{ast.unparse(part.value)}`", flat(words.value)


def _exceptions() -> Iterator[str]:
    yield inspect.getdoc(errors.MdistinctSqlError) or ""
    yield table(
        ("exception", "SQLSTATE", ""),
        [
            (
                f"`{kind.__name__}`",
                ", ".join(f"`{state}`" for state in kind.sqlstates),
                flat(inspect.getdoc(kind) or ""),
            )
            for kind in errors.MdistinctSqlError.__subclasses__()
        ],
    )
