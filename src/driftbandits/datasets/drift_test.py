"""Do the differences between arms last, and change? A permutation test over blocks of time.

| symbol | name   | shape  | meaning                                                        |
|--------|--------|--------|----------------------------------------------------------------|
| d      |        | (T, N) | reward less the mean of the round over the arms offered        |
| S, C   |        | (J, N) | sum and number of d in each of J short blocks                  |
| K      | windows |       | long stretches of consecutive blocks                           |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driftbandits.checks import check_count
from driftbandits.errors import InputError
from driftbandits.seeding import stream
from driftbandits.types import Floats


@dataclass(frozen=True)
class DriftTest:
    """Outcome of a test for drift.

    Parameters
    ----------
    statistic : variance between windows of arms' deviations from the round's mean, in rewards squared
    expected : its mean over the permutations; the ratio of the two says how strong the drift is
    p_value : small where arms' differences changed over time
    blocks, windows : how many there were

    >>> DriftTest(statistic=0.4, expected=0.1, p_value=0.002, blocks=80, windows=8).p_value
    0.002
    """

    statistic: float
    expected: float
    p_value: float
    blocks: int
    windows: int


def drift_test(
    table: npt.ArrayLike, *, block: int, windows: int = 8, permutations: int = 499, seed: int = 0
) -> DriftTest:
    """Test whether the differences between arms are the same all the time.

    From each reward its round's mean over the arms that were there is taken away, so that a level common to all arms,
    however it moves, does not count. The rounds are cut into short blocks, consecutive blocks make `windows` long
    windows, and the statistic is sum_k sum_x n_k(x) (m_k(x) - m(x))^2 / sum_k sum_x n_k(x), with m_k(x) the mean
    deviation of arm x in window k from n_k(x) rounds. Under no drift blocks may change places, so the p-value is the
    rank of the statistic among those of permuted blocks.

    Bad at: dependence longer than a block, which it takes for drift (choose a longer block), and changes shorter than
    a window, which it does not see (choose more windows). Which arms are there may change over time; where that goes
    with the level, deviations move a little too.

    Parameters
    ----------
    table : array, shape (T, N)
        Rewards or their means, NaN where an arm was not there.
    block : rounds in a block; what is left over at the end is not used
    windows : how many stretches are compared
    permutations, seed : how many random orders, and of which stream

    Returns
    -------
    DriftTest

    Raises
    ------
    InputError
        For fewer blocks than windows.

    >>> noise = stream(0, "doc").normal(size=(800, 4))
    >>> drift = np.where(np.arange(800)[:, None] < 400, [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0])
    >>> drift_test(noise, block=10).p_value > 0.05, drift_test(noise + drift, block=10).p_value
    (True, 0.002)
    """
    sums, counts = _blocks(table, block)
    if not 2 <= windows <= len(sums):
        raise InputError(f"windows must be from 2 to the {len(sums)} blocks there are, got {windows!r}; shorten block")
    check_count("permutations", permutations)
    labels = np.arange(len(sums)) * windows // len(sums)
    draws = stream(seed, "datasets", "drift test")
    observed = _between(sums, counts, labels, windows)
    others = np.array(
        [_between(sums[order], counts[order], labels, windows) for order in _orders(len(sums), permutations, draws)]
    )
    # a permutation that only relabels windows gives the same value up to rounding, and must count
    reached = int((others >= observed * (1.0 - 1e-12)).sum())
    return DriftTest(
        statistic=observed,
        expected=float(others.mean()),
        p_value=(1 + reached) / (1 + permutations),
        blocks=len(sums),
        windows=windows,
    )


def _blocks(table: npt.ArrayLike, block: int) -> tuple[Floats, Floats]:
    """Sums and numbers of deviations of every arm in every block, each (J, N)."""
    rewards = np.asarray(table, dtype=np.float64)
    if rewards.ndim != 2 or rewards.shape[1] < 2:
        raise InputError(f"table must have shape (rounds, arms) with two arms or more, got {rewards.shape}")
    if block < 1 or 2 * block > len(rewards):
        raise InputError(f"block must be from 1 to half of the {len(rewards)} rounds, got {block!r}")
    there = np.isfinite(rewards)
    if not there.any(axis=1).all():
        raise InputError(f"no arm has a reward in round {int(np.argmin(there.any(axis=1)))}; leave such rounds out")
    level = rewards.mean(axis=1, where=there, keepdims=True)
    number = len(rewards) // block
    shape = (number, block, rewards.shape[1])
    sums = np.where(there, rewards - level, 0.0)[: number * block].reshape(shape).sum(axis=1)
    return sums, there[: number * block].reshape(shape).sum(axis=1).astype(np.float64)


def _orders(size: int, number: int, draws: np.random.Generator) -> list[npt.NDArray[np.int64]]:
    return [draws.permutation(size) for _ in range(number)]


def _between(sums: Floats, counts: Floats, labels: npt.NDArray[np.int64], windows: int) -> float:
    """Variance between windows: weighted mean square of window means less the arm's own mean."""
    starts = np.searchsorted(labels, np.arange(windows))
    total, number = np.add.reduceat(sums, starts, axis=0), np.add.reduceat(counts, starts, axis=0)
    overall = total.sum(axis=0) / np.maximum(number.sum(axis=0), 1.0)
    means = total / np.maximum(number, 1.0)
    return float((number * (means - overall) ** 2).sum() / number.sum())
