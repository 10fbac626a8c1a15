"""Docstrings of methods that do what those of another class do: over HTTP, or awaited."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeVar

Kind = TypeVar("Kind", bound=type)


def described_by(other: type) -> Callable[[Kind], Kind]:
    """For a class whose methods say "See `Other.method`.": the words stand there, so that help shows them.

    What a docstring says behind that follows on the first paragraph.

    >>> class Local:
    ...     def names(self):
    ...         "Names of all.\\n\\nOldest first."
    >>> @described_by(Local)
    ... class Remote:
    ...     def names(self):
    ...         "See `Local.names`. It may take seconds."
    >>> Remote.names.__doc__
    'Names of all.\\n\\nIt may take seconds.\\n\\nOldest first.'
    """

    def describe(kind: Kind) -> Kind:
        for name, method in vars(kind).items():
            see, words = f"See `{other.__name__}.{name}`.", method.__doc__ or ""
            if words.startswith(see):
                first, _, rest = inspect.cleandoc(getattr(other, name).__doc__).partition("\n\n")
                method.__doc__ = "\n\n".join(filter(None, (first, words.removeprefix(see).strip(), rest)))
        return kind

    return describe
