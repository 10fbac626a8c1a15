"""Which seeds are for what: three ranges that never meet, and worlds that nothing may be chosen on.

development  from 0          trying things out, `compare`, runs of your own, tests, benchmarks of time
tuning       from 1,000,000  searches of settings
evaluation   from 2,000,000  what figures and tables of the study show

All seeds of the library come from here: a search takes TUNING, an experiment of the study EVALUATION, anything that
counts seeds "from 0" DEVELOPMENT. Real series have no seeds: there the number is that of a start offset.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from driftbandits.datasets import OFFSETS, REAL_PREFIX
from driftbandits.errors import InputError
from driftbandits.text import shown

MOST_RUNS_PER_EXPERIMENT = 10**6  # each is a file; and no more seeds than a range has
LARGEST_SEED = 2**63 - 1  # columns of tables are whole numbers of 64 bits
PLAY_FEWER_SEEDS = "play some of its seeds at a time, as in seeds: [0, 1, 2]"


@dataclass(frozen=True)
class SeedRange:
    """Seeds for one purpose: a million, from the first on."""

    purpose: str
    first: int

    def take(self, count: int) -> tuple[int, ...]:
        """The first so many.

        >>> TUNING.take(2)
        (1000000, 1000001)
        """
        if not 0 <= count <= MOST_RUNS_PER_EXPERIMENT:
            raise InputError(f"there are {MOST_RUNS_PER_EXPERIMENT:,} {self.purpose} seeds, asked for {shown(count)}")
        return tuple(range(self.first, self.first + count))

    def holds(self, seeds: Iterable[int]) -> bool:
        """Whether all of these seeds are for this purpose."""
        return all(self.first <= seed < self.first + MOST_RUNS_PER_EXPERIMENT for seed in seeds)


DEVELOPMENT = SeedRange("development", 0)
TUNING = SeedRange("tuning", 1_000_000)
EVALUATION = SeedRange("evaluation", 2_000_000)
DEFAULT_SEEDS = DEVELOPMENT.take(25)  # of a run of one's own
# Families of worlds that no setting is chosen on, whatever the seed.
EVALUATION_ONLY = ("linear/drifting", "cosine/stationary", REAL_PREFIX)


def check_tuning_world(environment: str) -> None:
    """Refuse a world that is for evaluation alone.

    >>> check_tuning_world("linear/drifting")
    Traceback (most recent call last):
    ...
    driftbandits.errors.InputError: 'linear/drifting' is for evaluation alone; tune on another world, such as ...
    """
    if environment.startswith(EVALUATION_ONLY):
        raise InputError(f"{environment!r} is for evaluation alone; tune on another world, such as 'switching/1'")


def default_seeds(environment: str) -> tuple[int, ...]:
    """The seeds where nothing is said: of real data, whose seeds are start offsets, all there are."""
    return tuple(range(OFFSETS)) if environment.startswith(REAL_PREFIX) else DEFAULT_SEEDS


def check_seed_count(count: int) -> int:
    """Return `count` if that many seeds can be played."""
    if count > MOST_RUNS_PER_EXPERIMENT:
        raise InputError(f"seeds must be at most {MOST_RUNS_PER_EXPERIMENT:,}, got {shown(count)}; {PLAY_FEWER_SEEDS}")
    return count


def check_seeds(seeds: tuple[int, ...]) -> tuple[int, ...]:
    """Return the seeds if they differ and fit into tables.

    A run counted twice would understate standard errors.
    """
    if len(set(seeds)) < len(seeds):
        raise InputError(f"seeds must differ from one another, got {shown(list(seeds))}")
    if seeds and (largest := max(seeds)) > LARGEST_SEED:
        raise InputError(f"a seed here must be at most 2^63 - 1, got {shown(largest)}; use a smaller one")
    return seeds
