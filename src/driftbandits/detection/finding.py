"""What a change test says, and what a detector reports."""

from __future__ import annotations

from dataclasses import dataclass

from driftbandits.types import Floats


@dataclass(frozen=True, slots=True)
class Verdict:
    """Outcome of one change test: did `statistic` exceed `threshold`, and on which arms.

    `statistic` is the largest one-sided difference over the arms and both directions.
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

    `compared_with` is a block or a law, `stream` says which of many tests fired; `before` and `after` are what is
    estimated of the arms. Whether the verdict's numbers are rewards, as gaps are, or something without a unit, such as
    evidence, is said by `in_rewards`. `stop_round` is the first round after those that disagree; None for the present.
    """

    first_round: int
    compared_with: int
    verdict: Verdict
    before: Floats
    after: Floats
    stream: str = ""
    in_rewards: bool = True
    stop_round: int | None = None
