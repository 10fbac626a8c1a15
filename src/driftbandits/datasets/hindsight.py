"""What one could have had, knowing everything afterwards: the best fixed arm, and the best few switches.

| symbol    | name    | shape  | meaning                                                       |
|-----------|---------|--------|---------------------------------------------------------------|
| r_t(x)    | table   | (T, N) | expected reward                                               |
| V_t(j, x) | best    | (K, N) | best total up to round t with at most j switches, x at the end |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driftbandits._util.checks import check_count
from driftbandits._util.seeding import stream
from driftbandits.environments import Environment
from driftbandits.errors import InputError
from driftbandits.types import Floats

SWITCHES = (1, 3, 10)  # of the sequences in hindsight


def switching_totals(table: npt.ArrayLike, *, most: int) -> Floats:
    """Largest total of a sequence of arms with at most 0, 1, ..., `most` switches.

    V_t(j, x) = r_t(x) + max(V_{t-1}(j, x), max_y V_{t-1}(j - 1, y)), in O(T N most).

    Parameters
    ----------
    table : expected rewards, shape (T, N), finite
    most : how many switches

    Returns
    -------
    array, shape (most + 1,)
        The first is the best fixed arm.

    Raises
    ------
    InputError
        For a table with holes, which `filled` fills.

    >>> switching_totals([[1.0, 0.0], [0.0, 0.5], [1.0, 0.0]], most=2)
    array([2. , 2. , 2.5])
    """
    rewards = np.asarray(table, dtype=np.float64)
    if rewards.ndim != 2 or not rewards.size or not np.isfinite(rewards).all():
        raise InputError(
            f"table must be finite numbers of shape (rounds, arms), got shape {rewards.shape}; fill holes with filled()"
        )
    check_count("most", most, least=0)
    best = np.zeros((most + 1, rewards.shape[1]))
    for row in rewards:
        if most:
            np.maximum(best[1:], best[:-1].max(axis=1, keepdims=True), out=best[1:])
        best += row
    totals: Floats = best.max(axis=1)
    return totals


def filled(world: Environment) -> Floats:
    """Expected rewards of a world, with the mean of the arms offered where an arm is not.

    A fixed arm that is away has to be replaced by something. The mean over what is offered is what a player without
    a second preference gets; it needs no order of arms chosen in hindsight, and totals stay sums over rounds, so that
    the dynamic programme is exact.

    Parameters
    ----------
    world : any environment

    Returns
    -------
    array, shape (T, N)

    >>> from driftbandits import ArmSet
    >>> from driftbandits.environments import Tabular
    >>> mask = [[True, True], [True, False]]
    >>> filled(Tabular(ArmSet([[0.0], [1.0]]), [[0.5, 0.0], [0.25, 0.0]], allowed=mask))
    array([[0.5 , 0.  ],
           [0.25, 0.25]])
    """
    means, mask = world.means(0, world.horizon), world.allowed(0, world.horizon)
    if mask is None:
        return means
    average = means.mean(axis=1, where=mask, keepdims=True)
    return np.where(mask, means, average)


def benchmarks_of(world: Environment) -> dict[str, float]:
    """Totals of expected reward over all rounds of a world, to measure regret against.

    Parameters
    ----------
    world : any environment

    Returns
    -------
    dict
        "per step" is the best arm of every round, out of reach where most of the change is noise; "fixed" the best
        single arm; "1 switch", "3 switches", "10 switches" the best sequences with at most that many. The total of a
        run is "per step" less the sum of its trace's regret.

    >>> from driftbandits import ArmSet
    >>> from driftbandits.environments import Tabular
    >>> world = Tabular(ArmSet([[0.0], [1.0]]), [[0.5, 0.0], [0.0, 0.25], [0.0, 0.5]])
    >>> benchmarks_of(world)
    {'per step': 1.25, 'fixed': 0.75, '1 switch': 1.25, '3 switches': 1.25, '10 switches': 1.25}
    """
    totals = switching_totals(filled(world), most=max(SWITCHES))
    switching = {f"{count} switch{'es' if count > 1 else ''}": float(totals[count]) for count in SWITCHES}
    return {"per step": float(world.best(0, world.horizon).sum()), "fixed": float(totals[0]), **switching}


def turnover(arms: npt.ArrayLike) -> float:
    """Share of rounds, after the first, in which another arm was played than in the round before.

    Parameters
    ----------
    arms : numbers of the arms played, one per round

    Returns
    -------
    float

    >>> turnover([3, 3, 1, 3, 3])
    0.5
    """
    played = np.asarray(arms)
    return float(np.mean(played[1:] != played[:-1])) if len(played) > 1 else 0.0


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
