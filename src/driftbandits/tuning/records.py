"""What a search gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftbandits.tuning.points import Origin, Values


@dataclass(frozen=True)
class PointScore:
    """A point that was tried: the cells it played, and its mean final regret over them."""

    number: int
    origin: Origin
    values: Values
    cells: int
    regret: float


@dataclass(frozen=True)
class BestSettings:
    """The best point of a search: its settings as plain values, its mean regret on tuning seeds, where it comes from.

    `cells` is the budget, all cells of the search; `scores` has every point, the longest alive and best first.
    """

    name: str
    policy: str
    values: Values
    settings: Mapping[str, Any]
    origin: Origin
    regret: float
    cells: int
    scores: tuple[PointScore, ...]


@dataclass(frozen=True)
class Tuned:
    """A finished command: the best settings of every search, the file they were written to, and what it cost.

    `cells` is the budget of all searches together and `played` what this process played of it: less where an earlier
    run or another machine had played the rest. `seconds` is the time this process took, `storage` the URL of the
    studies without its password.
    """

    best: tuple[BestSettings, ...]
    path: Path
    storage: str
    cells: int
    played: int
    seconds: float
