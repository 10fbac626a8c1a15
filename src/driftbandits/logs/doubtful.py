"""Arms of a log that may be slips: a name much like another's, and one that hardly occurs."""

from __future__ import annotations

import difflib
import re

import numpy as np

from driftbandits.logs.log import Log
from driftbandits.showing import counted, shown

FEW_ROWS = 3  # of an arm, up to which its name is doubted whatever it is like
_RARER = 20  # times as many rows must the arm have whose name another looks like
_ALIKE = 0.8  # of two names, by difflib
_MOST_SAID = 5
_MOST_COMPARED = 200  # rare arms, and letters of a name: the time grows with their product and square


def doubtful_arms(log: Log) -> tuple[str, ...]:
    """A sentence for every arm that looks like a misspelling of another, or has next to no rows.

    Arms that were given as an `ArmSet` are meant, and so are names that differ in their numbers alone.

    >>> rows = {"round": range(100), "arm": ["storm"] * 60 + ["derby"] * 39 + ["strom"], "reward": [0.0] * 100}
    >>> doubtful_arms(Log.read({**rows, "probability": [0.5] * 100}))
    ("arm 'strom' occurs in 1 row; did you mean 'storm' (60 rows)?",)
    """
    if log.arms is not None:
        return ()
    rows = np.bincount(log.arm, minlength=len(log.names))
    rare = [int(arm) for arm in np.argsort(rows, kind="stable") if 0 < rows[arm] * _RARER <= rows.max()]
    said = [words for arm in rare[:_MOST_COMPARED] if (words := _doubt(log, rows.tolist(), arm))]
    more = len(said) - _MOST_SAID
    return (*said[:_MOST_SAID], *([f"{counted(more, 'more arm')} like that"] if more > 0 else []))


def _doubt(log: Log, rows: list[int], arm: int) -> str:
    name = log.names[arm]
    often = [own for own, count in zip(log.names, rows, strict=True) if count >= _RARER * rows[arm]]
    near = [own for own in _near(name, often) if not _only_numbers_differ(name, own)]
    occurs = f"arm {shown(name)} occurs in {counted(rows[arm], 'row')}"
    if near:
        return f"{occurs}; did you mean {shown(near[0])} ({counted(rows[log.names.index(near[0])], 'row')})?"
    return f"{occurs} only: a slip in its name, or an arm of which nothing can be said" if rows[arm] <= FEW_ROWS else ""


def _near(name: str, others: list[str]) -> list[str]:
    """Names much like this one, the likest first; case and blanks do not count."""
    plain = {_plain(other): other for other in reversed(others)}
    return [plain[near] for near in difflib.get_close_matches(_plain(name), list(plain), n=3, cutoff=_ALIKE)]


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()[:_MOST_COMPARED]


def _only_numbers_differ(one: str, other: str) -> bool:
    """Whether two names are "12 EUR" and "13 EUR".

    >>> _only_numbers_differ("12 EUR", "13 EUR"), _only_numbers_differ("storm 1", "strom 1")
    (True, False)
    """
    words = [re.split(r"\d+", name) for name in (one, other)]
    return words[0] == words[1] and len(words[0]) > 1
