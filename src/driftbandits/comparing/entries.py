"""What policies and worlds have in common as arguments: one or many, with labels and settings or without."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from driftbandits.configuration.names import check_name
from driftbandits.errors import InputError
from driftbandits.showing import shown


@dataclass(frozen=True)
class Entry:
    """One of the things given: the label if it has one, what it is, and its settings."""

    label: str | None
    what: Any
    settings: Mapping[str, Any]


def entries(given: Any, kind: str) -> Iterator[Entry]:
    """The entries of an argument: one thing, a sequence of them, or a mapping from labels."""
    if isinstance(given, Mapping):
        for label, value in given.items():
            if not isinstance(label, str):
                raise InputError(f"the label of a {kind} is a text, got {shown(label)}; write {{{str(label)!r}: ...}}")
            yield _entry(label, value)
    elif isinstance(given, Sequence) and not isinstance(given, str) and not _is_pair(given):
        yield from (_entry(None, value) for value in given)
    else:
        yield _entry(None, given)


def _entry(label: str | None, value: Any) -> Entry:
    return Entry(label, value[0], value[1]) if _is_pair(value) else Entry(label, value, {})


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Mapping)


def label_of(entry: Entry, kind: str, own: Callable[[], Any]) -> str:
    """The label that was given, or the one that a thing has of its `own` with its settings."""
    if entry.label is not None:
        return entry.label
    name = own()
    if not isinstance(name, str):
        raise InputError(f"the label of a {kind} is a text, got {shown(name)}; write label = {str(name)!r}")
    return with_settings(check_name(name, f"label of a {kind}"), entry.settings)


def with_settings(name: str, settings: Mapping[str, Any]) -> str:
    """A label that tells variants of one thing apart.

    >>> with_settings("GPUCB", {"beta": 1.0})
    'GPUCB (beta=1.0)'
    """
    return f"{name} ({', '.join(f'{key}={shown(value)}' for key, value in settings.items())})" if settings else name


def check_distinct(labels: Sequence[str], kind: str) -> None:
    """Refuse nothing at all, and two of a name."""
    if not labels:
        raise InputError(f"there is no {kind} to compare; give at least one")
    for label in labels:
        check_name(label, f"label of a {kind}")
        if labels.count(label) > 1:
            raise InputError(
                f"a {kind} called {label!r} is there twice; give a mapping from labels, as in "
                f"{{'first': ..., 'second': ...}}"
            )


def name_of(maker: Any, kind: str) -> str:
    """The name of a class or function."""
    name = str(getattr(maker, "__name__", type(maker).__name__))
    if name == "<lambda>":
        raise InputError(f"a {kind} made by a lambda needs a label; write {{'my {kind}': lambda ...}}")
    return name
