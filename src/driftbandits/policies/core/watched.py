"""Forced rounds, and a generalised likelihood ratio test for each arm whose rewards are kept in order."""

from __future__ import annotations

from abc import abstractmethod

from driftbandits.detection.glr import History, glr_threshold
from driftbandits.policies.core.forced import ForcedRounds
from driftbandits.types import Floats


class WatchedArms(ForcedRounds):
    """A policy in episodes: an alarm of one arm's test (`detection.glr`) is reported and begins the next.

    A subclass keeps the number of the episode (from 1) and calls `_test` when an arm is due for one.
    """

    _episode: int

    def _test(self, ident: int, arm: int, history: History, *, rule: str, failure_probability: float) -> None:
        """Test the rewards of `arm`, the last of which is that of round `ident`."""
        split = history.best_split(self._kl)
        if split is None:
            return
        threshold = glr_threshold(rule, pulls=history.pulls, failure_probability=failure_probability)
        if split.statistic > threshold:
            self._report_change(
                epoch=self._episode - 1,
                interval=(min(split.last_round + 1, ident), ident + 1),
                statistic=split.statistic,
                threshold=threshold,
                arms=[arm],
                before=[split.before],
                after=[split.after],
            )
            self._episode += 1
            self._begin_episode(arm)

    @abstractmethod
    def _kl(self, left: Floats, right: float) -> Floats:
        """Divergence of the rewards' distributions with these means."""

    @abstractmethod
    def _begin_episode(self, arm: int) -> None:
        """Forget what an alarm of `arm` makes worthless; the episode has its new number."""
