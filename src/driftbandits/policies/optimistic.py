"""Policies that play the arm with the largest optimistic index, also with forced rounds and change tests."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driftbandits import state as states
from driftbandits.detection.glr import History, export_histories, gaussian_divergence, glr_threshold, read_histories
from driftbandits.errors import LawError
from driftbandits.policies.algorithm import DeclaredState, OneByOne
from driftbandits.policies.base import Policy
from driftbandits.policies.decisions import Row
from driftbandits.state.declared import count, listed
from driftbandits.types import Bools, Floats, Ints

_ROUNDING_OF_TIES = 1e-10  # relative to the largest index


@dataclass(frozen=True, slots=True)
class Optimism:
    """What an optimistic policy believes of an arm before it sees the reward, on the internal scale [-1, 1]."""

    value: float
    width: float


class OptimisticPolicy(DeclaredState, OneByOne, Policy):
    """Plays an arm whose index (estimate plus width) is largest; ties are broken by the draw.

    A subclass gives `_index`, `_optimism` and `_learn_one`. The law is uniform over the maximisers: a plain argmax
    would make every fresh start play arm 0, 1, 2, ... in order, a real bias under restarts.
    """

    _numbers_rounds = True  # the law may move with time alone

    @abstractmethod
    def _index(self) -> Floats:
        """Optimistic value of every arm, shape (N,); a pure function of the state."""

    @abstractmethod
    def _optimism(self, arm: int) -> Optimism:
        """Optimistic value and width of `arm` now; MASTER's tests are built on it."""

    def _leading_index(self) -> Floats:
        """The index, in which arms that are known not to lead may have -inf."""
        return self._index()

    def _law(self) -> Floats:
        return self._uniform_over(self._leading_index())

    def _stamp(self) -> tuple[int, int]:
        return self.rounds, 0

    def _law_within(self, mask: Bools) -> tuple[Floats, bool]:
        """The best allowed arm, not a renormalised law: the best of all may be forbidden."""
        index = self._index()
        return self._uniform_over(np.where(mask, index, -np.inf)), not mask[self._best(index)].all()

    def _pick(self, law: Floats, count: int) -> Ints:
        """As the base draws, without the cumulative sums: a law that is uniform over a few arms."""
        best = np.flatnonzero(law)
        uniforms = self._draws.random(count)
        return np.asarray(best[np.minimum((uniforms * len(best)).astype(np.int64), len(best) - 1)])

    def _weigh(self) -> npt.NDArray[Any]:
        """The best arms are all there is to draw from; a law is built only where a subclass has one of its own."""
        if type(self)._law is not OptimisticPolicy._law:  # forced exploration, say
            return super()._weigh()
        return self._best(self._leading_index())

    def _choose_one(self, weighed: npt.NDArray[Any]) -> tuple[int, float]:
        """The same draw as from the law."""
        if weighed.dtype.kind != "b":
            return super()._choose_one(weighed)
        uniform = self._draws.random()
        ties = int(np.count_nonzero(weighed))
        if ties == 1:
            return int(weighed.argmax()), 1.0
        return int(np.flatnonzero(weighed)[min(int(uniform * ties), ties - 1)]), 1.0 / ties

    def _uniform_over(self, index: Floats) -> Floats:
        best = self._best(index)
        return np.asarray(best / np.count_nonzero(best))

    def _best(self, index: Floats) -> Bools:
        """The maximisers; what differs by rounding only is a tie."""
        top = index.item(index.argmax())  # NaN, if there is one
        if math.isfinite(top):
            best: Bools = index >= top - _ROUNDING_OF_TIES * max(1.0, abs(top))
            return best
        if math.isnan(top):
            raise LawError(
                f"{type(self).__name__} expects nan of arm {int(index.argmax())} in round {self.rounds}, so it has no "
                f"law; nothing was decided in it"
            )
        return np.asarray(index == top)


class RandomisedRounds(OptimisticPolicy):
    """Plays the best arm, and with probability `_random_share` any arm, all alike."""

    _pick = Policy._pick

    @abstractmethod
    def _random_share(self) -> float:
        """The probability that the next round explores; a pure function of the state."""

    def _law(self) -> Floats:
        share = self._random_share()
        return (1.0 - share) * super()._law() + share / len(self.arms)

    def _law_within(self, mask: Bools) -> tuple[Floats, bool]:
        law, removed = super()._law_within(mask)
        share = self._random_share()
        return (1.0 - share) * law + share * mask / np.count_nonzero(mask), removed or share > 0.0


class ForcedRounds(DeclaredState, Policy):
    """A policy with forced rounds: in turn it plays some arms, by default all, with probability 1.

    Where the arm whose turn it is is not allowed, it gives its turn to what is played in other rounds.
    """

    _cycle: int  # rounds from one pass through these arms to the next; 0 where there are none

    @abstractmethod
    def _forced_since(self) -> int:
        """The round in which the first pass began."""

    def _forced_arms(self) -> Sequence[int]:
        return range(len(self.arms))

    def _forced(self) -> int | None:
        """The arm whose turn it is, if the next round is a forced one; a pure function of the state."""
        if not self._cycle:
            return None
        arms, place = self._forced_arms(), (self.rounds - self._forced_since()) % self._cycle
        return arms[place] if place < len(arms) else None

    def _quiet_rounds(self) -> int:
        return 1  # whose turn it is changes with the round

    def _law(self) -> Floats:
        arm = self._forced()
        if arm is None:
            return super()._law()  # type: ignore[safe-super]  # of the class that is played in other rounds
        law = np.zeros(len(self.arms))
        law[arm] = 1.0
        return law

    def _law_within(self, mask: Bools) -> tuple[Floats, bool]:
        arm = self._forced()
        if arm is None:
            return super()._law_within(mask)
        return (self._law(), False) if mask[arm] else (super()._law_within(mask)[0], True)


def forced_cycle(*, arms: int, horizon: int, episode: int, exploration: float) -> int:
    """Rounds from one pass through `arms` arms to the next in episode k (from 1); 0 where there are none.

    The share of forced rounds is alpha_k = exploration sqrt(k arms log T / T), so a cycle has floor(arms / alpha_k)
    rounds, the first `arms` of them forced.

    >>> forced_cycle(arms=10, horizon=10_000, episode=1, exploration=1.0)
    104
    """
    share = exploration * math.sqrt(episode * arms * math.log(horizon) / horizon)
    return math.floor(arms / min(share, 1.0)) if share > 0 else 0


class Episodes(ForcedRounds):
    """A policy in episodes: an alarm of one arm's test (`detection.glr`) is reported and begins the next.

    A subclass keeps the number of the episode (from 1) and calls `_test` when an arm is due for one.
    """

    reports_changes = True
    exploration: float  # of forced rounds
    _noise: float  # of the tests, on the internal scale
    _episode: int
    _origin: int  # of the episode
    _histories: dict[int, History]

    def _forced_since(self) -> int:
        return self._origin

    def _test(self, ident: int, arm: int, *, rule: str, failure_probability: float) -> None:
        """Test the rewards of `arm`, the last of which is that of round `ident`."""
        history = self._histories[arm]
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

    def _kl(self, left: Floats, right: float) -> Floats:
        """Divergence of the rewards' distributions with these means."""
        return gaussian_divergence(left, right, self._noise)

    def _export(self) -> dict[str, Any]:
        return {**super()._export(), **export_histories(self._histories)}

    def _import(self, state: states.Reader) -> None:
        self._histories = read_histories(state, arms=len(self.arms), rounds=self.rounds)
        super()._import(state)

    @abstractmethod
    def _begin_episode(self, arm: int) -> None:
        """Forget what an alarm of `arm` makes worthless; the episode has its new number."""


class WatchedCover(Episodes):
    """Episodes by the rewards of a cover of a few arms: all of them are forced in turn, and tested when told."""

    needs_horizon = True
    cover: int
    failure_probability: float
    _watched: list[int]

    @abstractmethod
    def _learn_present(self, row: Row, reward: float) -> None:
        """Take in a reward of the present episode."""

    def _forced_arms(self) -> Sequence[int]:
        return self._watched

    def _begin_episode(self, arm: int) -> None:
        self._open_episode()

    def _open_episode(self) -> None:
        """Begin with nothing learned."""
        self._origin = self.rounds
        self._histories = {}
        self._derive()

    def _derive(self) -> None:
        """What follows from the state: the cycle of forced rounds."""
        size, horizon = len(self._watched), self._phase_length
        self._cycle = forced_cycle(arms=size, horizon=horizon, episode=self._episode, exploration=self.exploration)

    def _learn_one(self, row: Row, reward: float) -> None:
        if row.id < self._origin:
            self.late += 1
            return
        self._learn_present(row, reward)
        if row.arm in self._watched:
            self._histories.setdefault(row.arm, History(spacing=1)).add(reward, row.id)
            delta = self.failure_probability / len(self._watched)
            self._test(row.id, row.arm, rule="practical", failure_probability=delta)

    _saved = (
        listed("watched", np.int64, None, within=(0, None)),  # on another machine rounding may choose another cover
        count("episode", low=1),
        count("origin", low="phase_start", high="rounds"),
    )

    def _check_state(self) -> None:
        size, watched = len(self.arms), self._watched
        fitting = 1 <= len(watched) <= self.cover and len(set(watched)) == len(watched) and max(watched) < size
        states.check(fitting and set(self._histories) <= set(watched), "watched arms")
        self._derive()
