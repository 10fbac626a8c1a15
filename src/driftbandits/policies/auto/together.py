"""Rewards that say little wait for others, and are learned together: see `joint`.

Most rewards are of an arm that is well known, and about what was expected of it. One such reward moves nothing that
a decision would show, and taking in several at once costs hardly more than one. So a reward waits where the leading
hypothesis knows its arm and is not surprised, until those waiting would narrow what is known by a twelfth. The better
an arm is known, the more of its rewards may wait. A reward of an arm not known well is learned at once, together with
those that wait. A surprise or a reward out of turn is learned by itself, after them. And hypotheses just born are soon
to be believed or not: the more weight they have, the fewer rewards wait.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.types import Floats, Ints

MOST_WAITING = 32  # rewards
MOST_DOUBTED = 0.15  # weight of hypotheses that are to be believed or not, times the rewards that wait meanwhile
LONGEST_GAP = 64  # rounds before a reward of which nothing was told, for it to wait
MOST_SAID = 0.08  # by all that wait: variances of what is expected of their arms, over that of the noise
NOISE_SAID = 1.0  # over the rewards behind the estimate of the noise, at least, by each: that stands still meanwhile
LARGEST_COORDINATE = 1e6  # of a reward, in whatever units are learned in


class Together:
    """Rewards that wait, in the order in which they will be learned."""

    def __init__(self) -> None:
        self._arms: list[int] = []
        self._passed: list[int] = []
        self._rewards: list[float] = []
        self._said = 0.0
        self._most = MOST_WAITING

    def allow(self, doubt: float) -> None:
        """Let at most so many wait from now on that hypotheses of weight `doubt` are weighed soon."""
        self._most = max(min(int(MOST_DOUBTED / max(doubt, 1e-9)), MOST_WAITING), 1)

    def __len__(self) -> int:
        return len(self._arms)

    def add(self, arm: int, passed: int, reward: float, said: float) -> None:
        """Let a reward wait, before which `passed` rounds pass."""
        self._arms.append(arm)
        self._passed.append(passed)
        self._rewards.append(reward)
        self._said += said

    @property
    def enough(self) -> bool:
        """Whether those waiting are to be learned now."""
        return self._said > MOST_SAID or len(self._arms) >= self._most

    def take(self) -> tuple[Ints, Ints, Floats]:
        """Arms, rounds passed before each, and rewards; none waits any more."""
        taken = np.array(self._arms), np.array(self._passed), np.array(self._rewards)
        self._arms, self._passed, self._rewards, self._said = [], [], [], 0.0
        return taken

    def renumbered(self, target: Ints) -> Together:
        """The same where arm a has the number target[a] now; rewards of arms that are gone, -1, are left out.

        Their rounds pass before the next; those after the last are few, and lost.
        """
        kept = Together()
        kept._said, kept._most = self._said, self._most
        between = 0
        for arm, passed, reward in zip(target[self._arms].tolist(), self._passed, self._rewards, strict=True):
            between += passed
            if arm >= 0:
                kept.add(arm, between, reward, 0.0)
                between = 0
        return kept

    # --- state --------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """Everything."""
        return {
            "arms": np.array(self._arms, dtype=np.int64),
            "passed": np.array(self._passed, dtype=np.int64),
            "rewards": np.array(self._rewards, dtype=np.float64),
            "said": self._said,
            "most": self._most,
        }

    def load(self, state: states.Reader, *, arms: int) -> None:
        """Inverse of `export`."""
        numbers = state.array("arms", np.int64, (None,))
        passed = state.array("passed", np.int64, numbers.shape)
        rewards = state.array("rewards", np.float64, numbers.shape)
        self._most = state.integer("most", low=1, high=MOST_WAITING)
        states.check(len(numbers) < self._most and bool(((numbers >= 0) & (numbers < arms)).all()), "arms")
        states.check(bool(((passed > 0) & (passed <= MOST_WAITING * LONGEST_GAP)).all()), "passed")
        states.check(bool((np.abs(rewards) <= LARGEST_COORDINATE).all()), "rewards")
        self._said = state.number("said")
        states.check(0.0 <= self._said <= MOST_SAID, "said")
        self._arms, self._passed, self._rewards = numbers.tolist(), passed.tolist(), rewards.tolist()
