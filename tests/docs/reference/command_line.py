"""The command line, from the program itself."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from pg_mdistinct.cli import main
from tests.docs.reference.markdown import page, table


def command_line_page() -> str:
    """Every command with its arguments and options, from the program itself."""
    return page(
        "Command line reference",
        "the help of `pg-mdistinct`",
        "[command-line.md](../command-line.md) tells how to use them together.",
        *(part for command, path in _commands(main, ()) for part in _command(command, path)),
    )


def _commands(
    group: click.Group, path: tuple[str, ...]
) -> Iterator[tuple[click.Command, tuple[str, ...]]]:
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from _commands(command, (*path, name))
        else:
            yield command, (*path, name)


def _command(command: click.Command, path: tuple[str, ...]) -> Iterator[str]:
    arguments = [p for p in command.params if isinstance(p, click.Argument)]
    options = [p for p in command.params if isinstance(p, click.Option)]
    words = [a.make_metavar(click.Context(command)) for a in arguments]
    needed = [f"{_longest(o)} {_value(o, command)}" for o in options if o.required]
    yield f"## {' '.join(path)}"
    yield f"`{' '.join(['pg-mdistinct', *path, *words, *needed])}`"
    yield inspect.cleandoc(command.help or "")
    yield table(
        ("option", "", "default"),
        [
            (
                ", ".join(f"`{name}`" for name in option.opts)
                + ("" if option.is_flag else f" `{_value(option, command)}`"),
                option.help or "",
                _default(option),
            )
            for option in options
        ],
    )


def _longest(option: click.Option) -> str:
    return max(option.opts, key=len)


def _value(option: click.Option, command: click.Command) -> str:
    if isinstance(option.type, click.Choice):
        return "|".join(option.type.choices)
    return option.make_metavar(click.Context(command))


def _default(option: click.Option) -> str:
    if option.envvar:
        return f"`${option.envvar}`"
    # Only what is told to people; newer versions of click have a mark of their own for no default.
    return f"`{option.default}`" if option.show_default else ""
