"""The exchangeable parts of the block engine, and the epoch that they all read.

What a block policy has played and been told since its last restart: the common ground of the engine's parts.

symbol     name           shape
P^(m)      laws[m]        (N,)
b_m        baselines[m]   (N,) what is taken off the rewards of law m, or None for nothing
S(P^(m))   factor(m)      Cholesky factor, (r, r), by the features and regulariser of the present block
B(k)       blocks[k]      rewards told of block k

The exchangeable parts of the block engine: what each must do.

part         asked for                          OPKB, ADA-OPKB, OPNN, ADA-OPNN     CalibratedOPKB
features     phi^(j), what arms have in common  of the kernel, or of a network     of the likeliest length scale
constants    how much a block explores          of `Constants`, once per horizon   closed forms, at every block
estimator    what the epoch says of rewards     IPS                                posterior mean, or residual IPS
detector     whether something changed          gaps of replays, or none           conformal martingales of residuals
probes       arms to be played out of turn       none                               arms that surprised (practical mode)

All are objects handed to the constructor of `BlockPolicy`. `driftbandits.detection` says what a detector must do.
IPS are inverse propensity scores: a reward counts the more, the less likely its arm was drawn.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from driftbandits import state as states
from driftbandits._util.linalg import Cholesky
from driftbandits.design import Design, solve_design
from driftbandits.design.blocks import Replay, Sums, ips_estimate, law_factor, merge
from driftbandits.detection import Detector
from driftbandits.errors import ConvergenceError, ConvergenceWarning, StateError
from driftbandits.policies.algorithm import freeze
from driftbandits.state.reader import FARTHEST, ROUNDING, check_sums, check_whole
from driftbandits.types import Bools, Floats, Ints

UNDER_WAY = 2**62  # in the place of the last tag and round of what has not ended


@dataclass
class OpenReplay:
    """A replay: its place in block `block`, when it began and ended, and what it has been told.

    One that is over may wait until the rewards of all its rounds are there; `stop_round` is the first round after it.
    """

    replay: Replay
    block: int
    first_tag: int
    first_round: int
    sums: Sums
    last_tag: int = UNDER_WAY
    stop_round: int = UNDER_WAY

    @property
    def whole(self) -> bool:
        """Whether it is its whole block, whose sums are those of the epoch."""
        return self.replay.index == self.block

    def end(self, tag: int, stop_round: int) -> None:
        """It is over: `tag` was its last stretch."""
        self.last_tag, self.stop_round = tag, stop_round

    def covers(self, tags: Ints) -> Bools:
        """Whether rounds with these tags belong to it."""
        return np.asarray((tags >= self.first_tag) & (tags <= self.last_tag))


class Epoch:
    """The laws of epoch `number`, the first of which has the number `law_base` among all laws of the policy."""

    def __init__(self, number: int, law_base: int) -> None:
        self.number = number
        self.law_base = law_base
        self.laws: list[Floats] = []
        self.baselines: list[Floats | None] = []
        self.blocks: list[Sums] = []
        self.tags: list[int] = []  # of the first stretch of every block
        self._factors: dict[int, Cholesky] = {}
        self._references: dict[int, Floats] = {}

    def view(self, features: Floats, regulariser: float) -> None:
        """Judge everything of the epoch by these features from now on."""
        self.features = features
        self.regulariser = regulariser
        self._factors = {}
        self._references = {}

    def add(self, law: Floats, baseline: Floats | None, tag: int) -> None:
        """A block begins that plays `law`."""
        self.laws.append(freeze(law.copy()))
        self.baselines.append(baseline)
        self.blocks.append(Sums.empty(len(self.laws), len(law)))
        self.tags.append(tag)

    def tell_earlier(self, block: int) -> Sums:
        """Sums of a block that is over, to be added to; what was concluded from them no longer holds."""
        self._references = {k: known for k, known in self._references.items() if k < block}
        return self.blocks[block]

    def factor(self, law: int) -> Cholesky:
        """S(P^(m)), factored when first needed."""
        if law not in self._factors:
            self._factors[law] = law_factor(self.features, self.laws[law], self.regulariser)
        return self._factors[law]

    def estimate(self, told: Sums) -> Floats:
        """(Residual) IPS estimate of every arm's reward, shape (N,)."""
        factors = [self.factor(m) for m in range(len(told.sums))] if told.told else []
        return ips_estimate(self.features, factors, told, self.baselines)

    def so_far(self) -> Floats:
        """Estimate from all that was told."""
        return self.estimate(merge(self.blocks))

    def reference(self, block: int) -> Floats | None:
        """Estimate from blocks 0 to `block`, None if nothing of them was told."""
        if block not in self._references:
            told = merge(self.blocks[: block + 1])
            if told.told == 0:
                return None
            self._references[block] = self.estimate(told)
        return self._references[block]

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values and arrays."""
        return {
            "number": self.number,
            "law_base": self.law_base,
            "laws": np.array(self.laws),
            "baselines": [{"given": b is not None, "values": np.zeros(0) if b is None else b} for b in self.baselines],
            "tags": np.array(self.tags),
            "blocks": [export_sums(part) for part in self.blocks],
        }

    def check_sums(self, told: Sums, *, most: int, largest: float) -> None:
        """Refuse more than `most` rewards, and sums beyond what rewards of this size and the baselines can give."""
        sizes = [largest + (0.0 if b is None else float(np.abs(b).max())) for b in self.baselines]
        check_whole(told.counts, most, "number of rewards told")
        weights = told.counts[:, None] * np.array(sizes[: len(told.counts)])[:, None]
        check_sums(np.broadcast_to(weights, told.sums.shape), told.sums, "sums of rewards told", slack=ROUNDING)

    @classmethod
    def load(cls, state: states.Reader, *, arms: int, last_tag: int) -> Epoch:
        """Inverse of `export`; `view` is left to the engine."""
        epoch = cls(state.integer("number", high=FARTHEST), state.integer("law_base", high=FARTHEST))
        laws = state.array("laws", np.float64, (None, arms))
        if not len(laws) or (laws < 0).any() or (np.abs(laws.sum(axis=1) - 1.0) > 1e-9).any():
            raise StateError("state.engine.epoch.laws are not probability vectors")
        epoch.laws = [freeze(law.copy()) for law in laws]
        epoch.baselines = [
            item.array("values", np.float64, (arms,)) if item.flag("given") else None
            for item in state.readers("baselines")
        ]
        epoch.blocks = [read_sums(item, laws=k + 1, arms=arms) for k, item in enumerate(state.readers("blocks"))]
        epoch.tags = state.array("tags", np.int64, (len(laws),)).tolist()
        if not len(epoch.blocks) == len(epoch.baselines) == len(laws):
            raise StateError(f"state.engine.epoch has {len(epoch.blocks)} blocks for {len(laws)} laws")
        if any(a >= b for a, b in zip([0, *epoch.tags], [*epoch.tags, last_tag + 1], strict=True)):
            raise StateError("state.engine.epoch.tags do not increase")
        return epoch


def latest_law(epoch: Epoch) -> Floats | None:
    """The law that the next one is likely to be near to."""
    return epoch.laws[-1] if epoch.laws else None


def export_sums(part: Sums) -> dict[str, Any]:
    """Sums as arrays."""
    return {"sums": part.sums.copy(), "counts": part.counts.copy()}


def read_sums(reader: states.Reader, *, laws: int, arms: int) -> Sums:
    """Inverse of `export_sums`."""
    counts = reader.array("counts", np.int64, (laws,))
    if (counts < 0).any():
        raise StateError("a number of rewards told in the state is negative")
    return Sums(sums=reader.array("sums", np.float64, (laws, arms)), counts=counts)


class FeatureSource:
    """The part that gives phi^(j); as it is here they never change, whatever is observed."""

    @property
    def first(self) -> Floats:
        """phi^(0), (N, r)."""
        raise NotImplementedError

    @property
    def present(self) -> Floats:
        """phi^(j) of the present block, (N, r')."""
        return self.first

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
        return False

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values and arrays."""
        return {}

    def load(self, state: states.Reader, *, rounds: int) -> None:
        """Inverse of `export`, after `rounds` rounds."""

    def check(self, *, told: int, probed: bool, largest: float) -> None:
        """Refuse what `told` rewards of laws, each of at most `largest` in size, cannot have led to.

        Where arms were `probed`, what was observed of them comes on top.
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


class Probes(Protocol):
    """The part that probes: single arms are played instead of drawn from a law.

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
        """Whether a probe has ended in such a way that a new block should begin that knows of it."""

    def open(self, first_round: int, length: int) -> None:
        """A block of `length` rounds begins, without a probe."""

    def ask(self, rounds: int) -> None:
        """The arm was played for `count` rounds."""

    def allow(self, mask: Bools) -> None:
        """Only these arms may be played now."""

    def surprise(self, arm: int, reward: float, round_: int, expected: Floats) -> None:
        """A reward of a law of a block that expects these rewards; it may begin a probe."""

    def tell(self, arm: int, reward: float, expected: Floats) -> None:
        """The reward of a probe."""

    def lose(self, arms: Ints) -> None:
        """The rewards of these probes will never come."""

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values."""

    def load(self, state: states.Reader, *, arms: int) -> None:
        """Inverse of `export`; the block was opened before."""


@dataclass(frozen=True)
class Parts:
    """The parts of one policy. Without a detector laws are never replayed, without probes arms never out of turn."""

    features: FeatureSource
    constants: BlockConstants
    estimator: Estimator
    detector: Detector | None = None
    probes: Probes | None = None


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


MANY_ARMS = 1_000  # beyond it a round would wait seconds for digits that nobody sees
_GAP, _GAP_OF_MANY = 1e-6, 0.05  # of log det S, a sum over a hundred directions or so


def best_design(
    features: Floats,
    regulariser: float,
    *,
    costs: Floats | None = None,
    candidates: Ints | None = None,
    near: Floats | None = None,
) -> Design:
    """What `solve_design` finds; where it stops short, its best law, which is still a valid one.

    Many arms are solved loosely, to a gap of 0.05, and from the law `near`: one that solves a problem much like this.
    """
    many = len(features) > MANY_ARMS
    try:
        return solve_design(
            features,
            costs=costs,
            candidates=candidates,
            regulariser=regulariser,
            tolerance=_GAP_OF_MANY if many else _GAP,
            warm_start=near if many else None,
        )
    except ConvergenceError as error:
        best: Design = error.best
        warnings.warn(f"playing a law with a gap of {best.gap:.2g}: {error}", ConvergenceWarning, stacklevel=3)
        return best
