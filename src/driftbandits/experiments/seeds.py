"""TODO-seeds."""

from __future__ import annotations

from driftbandits.datasets import OFFSETS
from driftbandits.datasets.registry import REAL_PREFIX
from driftbandits.errors import InputError
from driftbandits.text import shown

EVALUATION_SEEDS = tuple(range(25))
TUNING_SEEDS = tuple(range(1_000_000, 1_000_064))  # never used for a figure
MOST_RUNS_PER_EXPERIMENT = 10**6  # each is a file
LARGEST_SEED = 2**63 - 1  # columns of tables are whole numbers of 64 bits
PLAY_FEWER_SEEDS = "play some of its seeds at a time, as in seeds: [0, 1, 2]"


def default_seeds(environment: str) -> tuple[int, ...]:
    """The seeds where nothing is said: of real data, whose seeds are start offsets, all there are."""
    return tuple(range(OFFSETS)) if environment.startswith(REAL_PREFIX) else EVALUATION_SEEDS


def check_seed_count(count: int) -> int:
    """Give `count` back if so many seeds can be played."""
    if count > MOST_RUNS_PER_EXPERIMENT:
        raise InputError(f"seeds must be at most {MOST_RUNS_PER_EXPERIMENT:,}, got {shown(count)}; {PLAY_FEWER_SEEDS}")
    return count


def check_seeds(seeds: tuple[int, ...]) -> tuple[int, ...]:
    """Give the seeds back if no two are the same, and tables can hold them.

    A run counted twice would make errors look smaller than they are.
    """
    if len(set(seeds)) < len(seeds):
        raise InputError(f"seeds must differ from one another, got {shown(list(seeds))}")
    if seeds and (largest := max(seeds)) > LARGEST_SEED:
        raise InputError(f"a seed here must be at most 2^63 - 1, got {shown(largest)}; use a smaller one")
    return seeds
