"""The arms that an experiment has or had, and how they come and go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from driftbandits.errors import InputError, did_you_mean
from driftbandits.live.definition import Option, read_options
from driftbandits.showing import shown


@dataclass(slots=True)
class Entry:
    """An arm that the experiment has or had; its number is its place in the list, for good."""

    option: Option
    retired: bool = False


def changed(entries: Sequence[Entry], details: Mapping[str, Any]) -> list[Entry]:
    """Entries after a change of arms: some added, some retired, some brought back; refused if none would be left.

    >>> entries = changed([Entry(Option("red"))], {"add": ["blue"], "retire": ["red"]})
    >>> [(entry.option.name, entry.retired) for entry in entries]
    [('red', True), ('blue', False)]
    """
    found = [Entry(entry.option, entry.retired) for entry in entries]
    known = {entry.option.name: number for number, entry in enumerate(found)}
    wanted = len(found[0].option.features)
    for option in read_options("arms", details["add"]) if details.get("add") else ():
        if option.name in known:
            raise InputError(f"there is an arm called {shown(option.name)} already; bring_back one that was retired")
        if len(option.features) != wanted:
            raise InputError(f"{shown(option.name)} must have {wanted} features, as the others, got {option.features}")
        known[option.name] = len(found)
        found.append(Entry(option))
    both = set(details.get("retire", ())) & set(details.get("bring_back", ()))
    if both:
        raise InputError(f"{shown(min(both))} is to be retired and brought back at once; say one of the two")
    for name in details.get("retire", ()):
        found[number_of(known, name)].retired = True
    for name in details.get("bring_back", ()):
        found[number_of(known, name)].retired = False
    if all(entry.retired for entry in found):
        raise InputError("no arm would be left to decide for; keep at least one")
    return found


def number_of(known: Mapping[str, int], name: Any) -> int:
    """Number of the arm called `name`."""
    number = known.get(name) if isinstance(name, str) else None
    if number is None:
        near = did_you_mean(name, list(known)) if isinstance(name, str) else ""
        raise InputError(f"no arm is called {shown(name)}; {near}arms: {', '.join(map(shown, list(known)[:20]))}")
    return number
