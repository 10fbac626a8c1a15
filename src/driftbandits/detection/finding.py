"""What a change test says, and what a detector reports."""

from __future__ import annotations

from dataclasses import dataclass

from driftbandits.types import Floats


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
