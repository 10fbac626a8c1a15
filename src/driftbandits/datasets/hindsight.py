"""What one could have had, knowing everything afterwards: the best fixed arm, and the best few switches.

| symbol    | name    | shape  | meaning                                                       |
|-----------|---------|--------|---------------------------------------------------------------|
| r_t(x)    | table   | (T, N) | expected reward                                               |
| V_t(j, x) | best    | (K, N) | best total up to round t with at most j switches, x at the end |
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from driftbandits.checks import check_count
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
        single arm; "1 switch", "3 switches", "10 switches" the best sequences with at most so many. The total of a run
        is "per step" less the sum of its trace's regret.

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
