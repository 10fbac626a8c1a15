"""Whole lists of settings in the docstrings of policies, each setting described in one place.

A class describes the settings that are its own and writes `others : see ...` for the rest. Here the rest is filled in,
in the words of the nearest base that describes it, so that `help(GPUCB)` and the reference show every setting.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator

HEADING = "Parameters\n----------\n"
_ITEM = re.compile(r"(\w[\w, ]*) : .*(?:\n +.*)*\n?")  # a name or several, their words, and lines that go on
_OTHERS = "others"
_RAISES = re.compile(r"\nRaises\n------\n(?:\w+\n(?: +.*\n)+)+")


def whole_docstring(policy: type, settings: Iterable[str]) -> str | None:
    """The docstring of a class with an item for each of these settings, as far as it or a base describes them."""
    if not policy.__doc__:  # also what `python -OO` leaves
        return policy.__doc__
    before, items, after = _parts(inspect.cleandoc(policy.__doc__) + "\n")
    own = {name: text for names, text in items for name in names if name != _OTHERS}
    texts = {**dict(_described_by_bases(policy)), **own}
    listed = dict.fromkeys(texts[name] for name in settings if name in texts)  # one of several names stands there once
    if not listed:
        return policy.__doc__
    errors = "" if _RAISES.search(after) else _errors_of_bases(policy)
    return f"{before}{HEADING}{''.join({**listed, **dict.fromkeys(own.values())})}{errors}{after}"


def _described_by_bases(policy: type) -> Iterator[tuple[str, str]]:
    """Settings and the text of their items; of two, the later one in this order counts."""
    for base in reversed(policy.__mro__[1:]):
        for names, text in _parts(inspect.cleandoc(vars(base).get("__doc__") or "") + "\n")[1]:
            yield from ((name, text) for name in names)


def _errors_of_bases(policy: type) -> str:
    """The section on errors of the nearest base that has one."""
    docstrings = (inspect.cleandoc(vars(base).get("__doc__") or "") + "\n" for base in policy.__mro__[1:])
    return next((found[0] for docstring in docstrings if (found := _RAISES.search(docstring))), "")


def _parts(docstring: str) -> tuple[str, list[tuple[tuple[str, ...], str]], str]:
    """What stands before the list of parameters, its items with the names of each, and what stands after it."""
    before, heading, rest = docstring.partition(HEADING)
    if not heading:
        text, mark, examples = docstring.partition("\n>>> ")
        return f"{text.rstrip()}\n\n", [], f"\n>>> {examples}" if mark else ""
    items = []
    position = 0
    while item := _ITEM.match(rest, position):
        items.append((tuple(name.strip() for name in item[1].split(",")), item[0]))
        position = item.end()
    return before, items, rest[position:]
