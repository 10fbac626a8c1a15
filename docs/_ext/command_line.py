"""The directive `commands`: what every command of the library says of itself with --help."""

from __future__ import annotations

from collections.abc import Iterator

import typer
from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from typer.testing import CliRunner

from driftbandits.cli.app import app


def commands() -> Iterator[tuple[str, ...]]:
    """The words of every command that does something, in the order of the help."""
    yield from _below(typer.main.get_command(app), ())


def _below(command: object, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield words
    else:
        for name, each in inner.items():
            yield from _below(each, (*words, name))


def help_of(words: tuple[str, ...]) -> str:
    """What a command prints when it is asked for help."""
    done = CliRunner().invoke(app, [*words, "--help"], prog_name="driftbandits")
    if done.exit_code:
        raise ValueError(f"driftbandits {' '.join(words)} --help failed: {done.output}")
    return done.output.strip()


class Commands(SphinxDirective):
    """One section per command."""

    def run(self) -> list[nodes.Node]:
        """The title, and the help below it."""
        found: list[nodes.Node] = []
        for words in commands():
            name = f"driftbandits {' '.join(words)}"
            section = nodes.section(ids=[nodes.make_id(name)], names=[name])
            section += nodes.title(text=name)
            section += nodes.literal_block(text=help_of(words), language="text")
            found.append(section)
        return found


def setup(app):
    """Add the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}
