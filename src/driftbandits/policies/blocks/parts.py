"""The exchangeable parts of the block engine: what each must do.

part         asked for                          OPKB, ADA-OPKB, OPNN, ADA-OPNN     CalibratedOPKB
features     phi^(j), what arms have in common  of the kernel, or of a network     of the likeliest length scale
constants    how much a block explores          of `Constants`, once per horizon   closed forms, at every block
estimator    what the epoch says of rewards     IPS                                posterior mean, or residual IPS
detector     whether something changed          gaps of replays, or none           conformal martingales of residuals
looks        arms to be looked at out of turn   none                               arms that surprised (practical mode)

All are objects handed to the constructor of `BlockPolicy`. `driftbandits.detection` says what a detector must do.
IPS are inverse propensity scores: a reward counts the more, the less likely its arm was drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from driftbandits import state as states
from driftbandits.design import Design
from driftbandits.detection import Detector
from driftbandits.policies.blocks.epoch import Epoch
from driftbandits.types import Bools, Floats, Ints


class FeatureSource(Protocol):
    """The part that gives phi^(j)."""

    @property
    def first(self) -> Floats:
        """phi^(0), (N, r)."""

    @property
    def present(self) -> Floats:
        """phi^(j) of the present block, (N, r')."""

    def begin(self) -> None:
        """Find phi^(0); nothing is known."""

    def forget(self, since: int | None) -> None:
        """A new epoch begins: back to phi^(0); a source may keep what it saw of rounds from `since` on."""

    def observe(self, arms: Ints, rewards: Floats, rounds: Ints) -> None:
        """Rewards of the present epoch, in the order of their rounds."""

    def observe_one(self, arm: int, reward: float, round_: int) -> None:
        """One reward of the present epoch."""

    def prepare(self) -> None:
        """Compute what takes long of the next block's features; changes nothing that is believed."""

    def advance(self) -> bool:
        """A new block begins: take its features; whether they are others than before."""

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values and arrays."""

    def load(self, state: states.Reader, *, rounds: int) -> None:
        """Inverse of `export`, after `rounds` rounds."""

    def check(self, *, told: int, looked: bool, largest: float) -> None:
        """Refuse what `told` rewards of laws, each of at most `largest` in size, cannot have led to.

        Where arms may have been `looked` at out of turn, there were rewards of these beside.
        """


class BlockLevels(Protocol):
    """The numbers that a block is played by."""

    @property
    def block_size(self) -> int:
        """E, for all blocks of the epoch."""

    @property
    def regulariser(self) -> float:
        """lambda."""

    def beta(self, block: int) -> float:
        """Weight of exploitation."""


class BlockConstants(Protocol):
    """The part that says how much a block explores."""

    @property
    def share(self) -> float:
        """Share of the optimal design over the good arms in OP's answer."""

    @property
    def lowest_index(self) -> int:
        """Lowest index of a law that is replayed."""

    def begin(self, horizon: int | None) -> None:
        """A start, for this many rounds (None: unknown); the features have begun."""

    def open(self, epoch: Epoch) -> BlockLevels:
        """The constants of the block of `epoch` that begins now."""

    def optimal_design(self, epoch: Epoch, *, moved: bool) -> Floats:
        """pi(X) by the present features, which have `moved` since the last block or not."""

    def knows_enough(self) -> bool:
        """Whether a new epoch can begin with a law of OP instead of the optimal design."""

    def solve(self, epoch: Epoch, *, costs: Floats | None = None, candidates: Ints | None = None) -> Design:
        """The law that costs least for what it teaches, by the present features."""

    def good_gap(self, block: int, design: Floats) -> float:
        """Largest estimated gap of a good arm, given the optimal design by the present features."""

    def mixing(self, block: int, law: Floats, design: Floats, estimated: Floats) -> float:
        """mu_j: the share of the optimal design in the law of a block, given OP's answer and the estimated gaps."""

    def replay_scale(self, epoch: Epoch) -> float:
        """What the chances of replays in the last block of the epoch are multiplied by."""

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values and arrays."""

    def load(self, state: states.Reader, *, horizon: int) -> BlockLevels:
        """Inverse of `export`; the constants of the present block. The features are loaded before."""

    def check(self, epoch: Epoch) -> None:
        """Refuse constants that do not follow from the epoch."""


class Estimator(Protocol):
    """The part that says what the epoch so far tells of every arm's reward."""

    subtracts: bool  # whether it takes a baseline off the rewards

    def rewards(self, epoch: Epoch) -> Floats:
        """Estimated rewards, shape (N,): the gaps of the next law come from them."""

    def baseline(self) -> Floats | None:
        """What is taken off the rewards of a law that begins now, shape (N,), if it `subtracts`."""


class Looks(Protocol):
    """The part that plays single arms out of turn: an arm is looked at instead of drawn from a law.

    What a block expects of arms is its baseline; without an estimator that subtracts one it expects nothing.
    """

    @property
    def arm(self) -> int | None:
        """The arm to be played now, None for the law of the block."""

    @property
    def left(self) -> int:
        """For how many rounds yet."""

    @property
    def calls_for_a_block(self) -> bool:
        """Whether a look has ended in such a way that a new block should begin that knows of it."""

    def open(self, first_round: int, length: int) -> None:
        """A block of `length` rounds begins; no arm is looked at."""

    def ask(self, rounds: int) -> None:
        """The arm was asked for so many rounds."""

    def allow(self, mask: Bools) -> None:
        """Only these arms may be played now."""

    def surprise(self, arm: int, reward: float, round_: int, expected: Floats) -> None:
        """A reward of a law of a block that expects these rewards; it may begin a look."""

    def tell(self, arm: int, reward: float, expected: Floats) -> None:
        """A reward of an arm that was looked at."""

    def lose(self, arms: Ints) -> None:
        """Rewards of rounds that looked at these arms will never come."""

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values."""

    def load(self, state: states.Reader, *, arms: int) -> None:
        """Inverse of `export`; the block was opened before."""


@dataclass(frozen=True)
class Parts:
    """The parts of one policy. Without a detector laws are never replayed, without looks arms never out of turn."""

    features: FeatureSource
    constants: BlockConstants
    estimator: Estimator
    detector: Detector | None = None
    looks: Looks | None = None


class InversePropensities:
    """The paper's estimator: each reward weighed by how unlikely it was that its arm was drawn."""

    subtracts = False

    def rewards(self, epoch: Epoch) -> Floats:
        """IPS estimate from all that was told."""
        return epoch.so_far()

    def baseline(self) -> None:
        """Nothing is taken off."""


def point_law(arm: int, arms: int) -> Floats:
    """The law that plays `arm` alone."""
    law = np.zeros(arms)
    law[arm] = 1.0
    return law
