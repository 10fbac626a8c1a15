"""What a detector is, what it reports, which arms it may watch, and how well changes were found.

What a detector is: the part of the block engine that finds changes.

It is handed to the engine, told when epochs and blocks begin and which rewards come, and asked for a finding. It sees
the epoch through `EpochSeen`, so that it can be written, and tested, without the engine. Rewards are on the engine's
scale throughout: [-1, 1], but where the constants of a policy divide them by something else.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import numpy as np

from driftbandits import state as states
from driftbandits._util.checks import check_positive
from driftbandits._util.linalg import Cholesky
from driftbandits.design.blocks import Replay, Sums
from driftbandits.errors import InputError
from driftbandits.types import Floats, Ints


@dataclass(frozen=True, slots=True)
class Verdict:
    """Outcome of one change test: did `statistic` exceed `threshold`, and on which arms.

    Parameters
    ----------
    statistic : the largest one-sided difference over the arms and both directions
    threshold : what it had to exceed
    arms : on which it did; none if nothing changed

    >>> verdict = Verdict(0.5, 0.25, (3, 7))
    >>> verdict.changed, verdict.excess
    (True, 2.0)
    """

    statistic: float
    threshold: float
    arms: tuple[int, ...]

    @property
    def changed(self) -> bool:
        """Whether the test fired."""
        return bool(self.arms)

    @property
    def excess(self) -> float:
        """Statistic in units of the threshold; above 1 means a change."""
        return self.statistic / self.threshold if self.threshold > 0 else float("inf")


@dataclass(frozen=True)
class Finding:
    """A change found: rounds since `first_round` disagree on the verdict's arms with what was learned before.

    Parameters
    ----------
    first_round : the first that disagrees
    compared_with : a block or a law
    verdict : of the test that fired
    before, after : what is estimated of the verdict's arms
    stream : which of many tests fired
    in_rewards : whether the verdict's numbers are rewards, as gaps are, or something without a unit, such as evidence
    stop_round : the first round after those that disagree; None for the present

    >>> import numpy as np
    >>> found = Finding(120, 0, Verdict(0.5, 0.25, (3,)), before=np.array([0.4]), after=np.array([-0.1]))
    >>> found.first_round, found.verdict.arms, found.in_rewards
    (120, (3,), True)
    """

    first_round: int
    compared_with: int
    verdict: Verdict
    before: Floats
    after: Floats
    stream: str = ""
    in_rewards: bool = True
    stop_round: int | None = None


TOLD_SHARE = 0.9  # a replay with a smaller share of its rewards told is not tested


class EpochSeen(Protocol):
    """What a detector may read of the epoch: its laws, what was told of them, and estimates from that."""

    laws: list[Floats]
    baselines: list[Floats | None]
    blocks: list[Sums]
    features: Floats

    def factor(self, law: int) -> Cholesky:
        """S(P^(m)), factored."""

    def estimate(self, told: Sums) -> Floats:
        """Estimate of every arm's reward from these rewards, shape (N,)."""

    def reference(self, block: int) -> Floats | None:
        """Estimate from blocks 0 to `block`, None if nothing of them was told."""


class ReplaySeen(Protocol):
    """What a detector may read of a replay: its place in its block, its rounds, and what was told of it.

    `stop_round` is the first round after it. Where rewards come late and are learned in the order asked, a replay is
    tested once all of its rewards are there: `block`, in which it was, may be over by then.
    """

    replay: Replay
    block: int
    first_round: int
    stop_round: int
    sums: Sums


class Detector(Protocol):
    """A change detector inside a policy of the OPKB family.

    A protocol: a class with these methods is one, and need not derive from it. The page on extending the library has a
    complete example. Rewards are on the engine's scale, [-1, 1].

    >>> from driftbandits.detection.gaps import GapTest
    >>> [name for name in ("begin", "see", "verdict", "export", "load") if not hasattr(GapTest, name)]
    []
    """

    prompt: bool  # whether any reward may make it fire; otherwise it is asked when a replay ends

    @property
    def fired(self) -> bool:
        """Whether it has fired. This stays true until `begin`, whatever rewards come in between."""

    def begin(self) -> None:
        """A new epoch begins."""

    def open(self, epoch: EpochSeen, first_round: int) -> None:
        """The last law of the epoch begins.

        Parameters
        ----------
        epoch : its laws, what was told of them, and estimates from that
        first_round : of the law
        """

    def see(self, law: int, arm: int, reward: float, value: float, round_: int) -> None:
        """A reward of the epoch came; only if `prompt`.

        Parameters
        ----------
        law : number of the law that drew the arm
        arm : number of the arm
        reward : on the engine's scale
        value : the same less the baseline of its law
        round_ : in which the arm was asked
        """

    def see_apart(self, arm: int, reward: float, round_: int) -> None:
        """A reward of an arm that no law of the epoch has drawn; only if `prompt`.

        Parameters
        ----------
        arm, reward, round_ : as in `see`
        """

    def verdict(self, epoch: EpochSeen, ended: Sequence[ReplaySeen]) -> Finding | None:
        """Whether something has changed, now that some replays have ended, or it has fired.

        Parameters
        ----------
        epoch : its laws, what was told of them, and estimates from that
        ended : the replays that have ended

        Returns
        -------
        Finding, or None
        """

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values and arrays."""

    def load(self, state: states.Reader, epoch: EpochSeen, under_way: Sequence[ReplaySeen], *, rounds: int) -> None:
        """Inverse of `export`.

        Parameters
        ----------
        state : what `export` gave
        epoch : as it stands
        under_way : replays that have not ended
        rounds : played so far
        """


_ROUNDING_OF_TIES = 1e-9  # relative to the largest k(x, x): arms as far from the cover as this are equally far


def kernel_cover(features: Floats, size: int) -> Ints:
    """At most `size` arms, each the one of which those before it tell least, shape (n,).

    What a cover C leaves open of an arm is rest(x) = k(x, x) - k(x, C) K_CC^-1 k(C, x), its variance given the rewards
    of C without noise: a change g that leaves the rewards of all of C as they were satisfies |g(x)| <= ||g||_H
    sqrt(rest(x)). The next arm is the one with the largest rest (a pivoted Cholesky factorisation), the first of them
    where several are; when nothing is left the cover is complete, and may be shorter than `size`: d arms for a linear
    kernel in d dimensions.

    >>> kernel_cover(np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.6, 0.8]]), 3).tolist()
    [1, 2]
    """
    rest = np.einsum("ij,ij->i", features, features)
    slack = _ROUNDING_OF_TIES * float(rest.max(initial=0.0))
    most = min(size, *features.shape)
    columns = np.zeros((len(features), most))  # of the factorisation
    chosen: list[int] = []
    while len(chosen) < most and rest.max() > slack:
        arm = int(np.argmax(rest >= rest.max() - slack))
        column = features @ features[arm] - columns @ columns[arm]
        column /= np.sqrt(rest[arm])
        rest = np.maximum(rest - np.square(column), 0.0)
        columns[:, len(chosen)] = column
        chosen.append(arm)
        rest[chosen] = 0.0
    return np.array(chosen, dtype=np.int64)


@dataclass(frozen=True)
class Detection:
    """How a run's true changes were detected.

    A true change counts as found by the first alarm after it and before the next true change; every other alarm is
    false.

    Parameters
    ----------
    delays : rounds from each change that was found to its alarm
    missed : number of changes that were not found
    false_alarms : number of alarms that belong to no change

    >>> Detection(delays=(30,), missed=1, false_alarms=1).delays
    (30,)
    """

    delays: tuple[int, ...]
    missed: int
    false_alarms: int


def detections(true_changes: Sequence[int], alarms: Sequence[int]) -> Detection:
    """Match alarms with true changes.

    Parameters
    ----------
    true_changes : first rounds of new reward functions
    alarms : first rounds of new epochs: `change.round` of each change found

    Returns
    -------
    Detection

    >>> detections([100, 500], [130, 140])
    Detection(delays=(30,), missed=1, false_alarms=1)
    """
    truth = sorted(int(t) for t in true_changes)
    rounds = sorted(int(a) for a in alarms)
    delays = []
    for change, following in pairwise([*truth, sys.maxsize]):
        found = [a for a in rounds if change < a <= following]
        if found:
            delays.append(found[0] - change)
    return Detection(delays=tuple(delays), missed=len(truth) - len(delays), false_alarms=len(rounds) - len(delays))


LATEST = 10**15  # rounds; what is later than this is never


@runtime_checkable
class Watching(Protocol):
    """A policy whose test has a stated level."""

    def rounds_to_find(self, size: float | None = None) -> int:
        """Least rounds in which a change of `size`, in the units of the rewards, can be found."""


def first_detectable_horizon(policy: object, size: float | None = None) -> int:
    """Smallest number of rounds in which `policy` can find a change of `size`.

    For ADA-OPKB and ADA-OPNN: the smallest horizon with a test that an arm can fail whose gap grew from 0 to `size`,
    estimated without any error. For CalibratedOPKB: rounds before the change and after it, at the best time for it,
    until residuals of a law that moved by `size` in every round have gathered the evidence on average, for Gaussian
    noise of the size estimated so far (the rewards of a single arm, or luck, may do it sooner).

    Parameters
    ----------
    policy : an AdaOPKB, AdaOPNN or CalibratedOPKB; it is not changed, and its own horizon does not matter
    size : of the change, in the units of the rewards; by default half of the declared range

    Returns
    -------
    int

    Raises
    ------
    InputError
        For other policies, and for a change too small to be found in 10^15 rounds.

    >>> from driftbandits import AdaOPKB, ArmSet, CalibratedOPKB, Constants
    >>> arms = ArmSet(np.linspace(0, 1, 20)[:, None])
    >>> theory = AdaOPKB(arms, constants=Constants.theory(bound=1.0, noise=1.0))
    >>> first_detectable_horizon(theory) > 10_000_000
    True
    >>> first_detectable_horizon(CalibratedOPKB(arms)) < 100
    True
    """
    if not isinstance(policy, Watching):
        raise InputError(
            f"first_detectable_horizon knows AdaOPKB, AdaOPNN and CalibratedOPKB, got {type(policy).__name__}, "
            f"which has no test of a stated level"
        )
    needed = policy.rounds_to_find(None if size is None else check_positive("size", size))
    if needed > LATEST:
        which = "half the range" if size is None else f"{size:g}"
        raise InputError(f"a change of {which} is too small to be found in 10^15 rounds; ask for a larger one")
    return needed
