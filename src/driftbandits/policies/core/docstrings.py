"""Whole lists of settings in the docstrings of policies, each setting described in one place.

A class describes the settings that are its own and writes `others : see ...` for the rest. Here the rest is filled in,
in the words of the nearest base that describes it, so that `help(GPUCB)` and the reference show every setting.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

HEADING = "Parameters\n----------\n"
_ITEM = re.compile(r"(\w[\w, ]*) : .*(?:\n +.*)*\n?")  # a name or several, their words, and lines that go on
_OTHERS = "others"  # see there
_RAISES = re.compile(r"\nRaises\n------\n(?:\w+\n(?: +.*\n)+)+")


class Parts(NamedTuple):
    """A docstring, taken apart: the text before the list of parameters, its items by their names, and what follows."""

    before: str
    items: dict[str, str]
    after: str

    @property
    def errors(self) -> str:
        """The section on errors."""
        found = _RAISES.search(self.after)
        return found[0] if found else ""


def whole_docstring(policy: type, settings: Iterable[str]) -> str | None:
    """The docstring of a class with an item for each of these settings, as far as it or a base describes them."""
    if not policy.__doc__:  # also what `python -OO` leaves
        return policy.__doc__
    own, *bases = [taken_apart(base.__dict__.get("__doc__") or "") for base in policy.__mro__]
    words = {name: text for part in (*reversed(bases), own) for name, text in part.items.items()}
    listed = dict.fromkeys(words[name] for name in settings if name in words)  # one of several names stands there once
    if not listed:
        return policy.__doc__
    errors = "" if own.errors else next((base.errors for base in bases if base.errors), "")
    return f"{own.before}{HEADING}{''.join(listed | dict.fromkeys(own.items.values()))}{errors}{own.after}"


@cache
def taken_apart(docstring: str) -> Parts:
    """The parts of a docstring; without a list of parameters, the examples are what would follow it.

    >>> taken_apart("Keeps a window.\\n\\nParameters\\n----------\\nwindow : rounds kept\\n\\nSlow.")
    Parts(before='Keeps a window.\\n\\n', items={'window': 'window : rounds kept\\n'}, after='\\nSlow.\\n')
    """
    text = inspect.cleandoc(docstring) + "\n"
    before, heading, rest = text.partition(HEADING)
    if not heading:
        before, mark, examples = text.partition("\n>>> ")
        return Parts(f"{before.rstrip()}\n\n", {}, f"{mark}{examples}")
    items: dict[str, str] = {}
    position = 0
    while item := _ITEM.match(rest, position):
        items |= {name.strip(): item[0] for name in item[1].split(",")}
        position = item.end()
    items.pop(_OTHERS, None)
    return Parts(before, items, rest[position:])
