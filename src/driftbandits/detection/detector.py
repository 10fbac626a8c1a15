"""What a detector is: the part of the block engine that finds changes.

It is handed to the engine, told when epochs and blocks begin and which rewards come, and asked for a finding. It sees
the epoch through `EpochSeen`, so that it can be written, and tested, without the engine. Rewards are on the engine's
scale throughout: [-1, 1], but where the constants of a policy divide them by something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from driftbandits import state as states
from driftbandits.detection.finding import Finding
from driftbandits.estimation import Sums
from driftbandits.linalg import Cholesky
from driftbandits.schedule import Replay
from driftbandits.types import Floats

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
    """What watches for changes, inside a policy of the OPKB family.

    A protocol: a class with these methods is one, and need not derive from it. The page on extending the library has a
    complete example. Rewards are on the engine's scale, [-1, 1].

    >>> from driftbandits.detection.gap_test import GapTest
    >>> [name for name in ("begin", "see", "verdict", "export", "load") if not hasattr(GapTest, name)]
    []
    """

    prompt: bool  # whether any reward may make it fire; otherwise it is asked when a replay ends

    @property
    def fired(self) -> bool:
        """Whether a reward has made it fire. It stays so until `begin`, whatever rewards are still told meanwhile."""

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
