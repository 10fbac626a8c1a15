"""CalibratedOPKB: ADA-OPKB without constants, and with alarms that carry a guarantee.

A probe of an arm that surprised: playing it alone for a while, as long as it keeps its promise.

The law of a block plays bad arms seldom and stays until the block ends. A bad arm that has become the best would be
seen once and then again long after. So a reward that is far beyond what was expected of its arm, and beyond the best
arm's, is followed up at once: the arm is played until its mean falls short of the best, or a martingale fires, or
it was played `wanted` times; then a new block begins that knows. Where rewards have two values only, a single one says
too little, and nothing is probed. This is a matter of regret alone: rounds of a probe follow no law of the
epoch, so no stream ranks them, and an arm's martingale holds however its rounds are chosen.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, Unpack

import numpy as np

from driftbandits import state as states
from driftbandits._util.checks import check_count, check_probability, check_word
from driftbandits._util.guard import guarded
from driftbandits._util.seeding import check_seed, stream
from driftbandits.arms.arm_set import ArmSet
from driftbandits.detection.gaps import StreamsAndGaps
from driftbandits.detection.streams import Streams, rounds_by_ranks
from driftbandits.errors import DoubtWarning
from driftbandits.policies.algorithm import Family
from driftbandits.policies.arm_migration import ArmsChange
from driftbandits.policies.decisions import Feedback, Row
from driftbandits.policies.inputs import CommonSettings
from driftbandits.policies.inspection import around
from driftbandits.policies.opkb.closed_forms import PracticalConstants, TheoryConstants
from driftbandits.policies.opkb.engine import BlockPolicy
from driftbandits.policies.opkb.parts import Epoch, Parts
from driftbandits.policies.opkb.surrogate import Surrogate
from driftbandits.state.reader import FARTHEST, ROUNDING
from driftbandits.types import Bools, Floats, Ints


class PosteriorMean:
    """The mean of the Gaussian process believed in: exact where it is right."""

    subtracts = True

    def __init__(self, surrogate: Surrogate) -> None:
        self._surrogate = surrogate

    def rewards(self, epoch: Epoch) -> Floats:
        """Posterior mean of every arm's reward, shape (N,)."""
        return self._surrogate.mean()

    def baseline(self) -> Floats:
        """The same, when a law begins."""
        return self._surrogate.mean()


class ResidualIPS(PosteriorMean):
    """IPS of what the mean leaves unexplained: right on average whatever the process, as the analysis needs it."""

    def rewards(self, epoch: Epoch) -> Floats:
        """The estimate from all laws of the epoch; before the first, the mean alone."""
        return epoch.so_far() if epoch.blocks else self._surrogate.mean()


SHORTEST_LOOK = 32  # rounds
LEAST_AGE_SHARE = 8  # a block that ends with a probe has lasted 1 / 8 of its length: blocks double, so they stay few
_SURPRISE = 3.0  # standard deviations of the noise


@dataclass
class Probe:
    """One probe of `arm` of at most `wanted` rounds: those asked for it, and the rewards told of them."""

    arm: int
    wanted: int
    asked: int = 0
    told: int = 0
    total: float = 0.0

    @property
    def left(self) -> int:
        """Rounds still to be asked."""
        return self.wanted - self.asked

    @property
    def kept(self) -> bool:
        """Whether the arm has kept its promise to the end."""
        return self.told == self.wanted

    def lose(self, rounds: int) -> bool:
        """Take `count` rounds off the probe; whether it is over."""
        lost = min(rounds, self.asked - self.told)
        self.wanted -= lost
        self.asked -= lost
        return self.wanted <= 0

    def disappoints(self, reward: float, best: float, noise_variance: float) -> bool:
        """Take in a reward; whether the arm's mean is by now a standard error below the best arm's."""
        self.told += 1
        self.total += reward
        return self.total / self.told + math.sqrt(noise_variance / self.told) < best

    def export(self) -> dict[str, Any]:
        """As JSON values."""
        return dataclasses.asdict(self)

    @classmethod
    def load(cls, state: states.Reader, arms: int) -> Probe:
        """Inverse of `export`."""
        arm, wanted = state.integer("arm", high=arms - 1), state.integer("wanted", low=1, high=FARTHEST)
        asked = state.integer("asked", high=wanted)
        told, total = state.integer("told", high=asked), state.number("total")
        states.check(abs(total) <= (1.0 + ROUNDING) * told, "rewards of a probe")
        return cls(arm, wanted, asked, told, total)


class SurpriseProbes:
    """At most one probe at a time, by what the block expects and what is believed of the noise."""

    def __init__(self, surrogate: Surrogate) -> None:
        self._surrogate = surrogate
        self._probe: Probe | None = None
        self._first_round = 0  # of the block
        self._length = 0

    @property
    def probe(self) -> Probe | None:
        """The probe under way, whether or not rounds of it are left to be asked."""
        return self._probe

    @property
    def arm(self) -> int | None:
        """The arm to be played now."""
        return self._probe.arm if self._probe is not None and self._probe.left > 0 else None

    @property
    def left(self) -> int:
        """Rounds of the probe still to be asked."""
        return 0 if self._probe is None else self._probe.left

    @property
    def calls_for_a_block(self) -> bool:
        """Whether the arm has kept its promise to the end."""
        return self._probe is not None and self._probe.kept

    def open(self, first_round: int, length: int) -> None:
        """A block begins."""
        self._probe = None
        self._first_round, self._length = first_round, length

    def ask(self, rounds: int) -> None:
        """The arm was played for `count` rounds."""
        if self._probe is not None:
            self._probe.asked += rounds

    def allow(self, mask: Bools) -> None:
        """A probe ends where its arm may not be played."""
        if self._probe is not None and not mask[self._probe.arm]:
            self._probe = None

    def surprise(self, arm: int, reward: float, round_: int, expected: Floats) -> None:
        """Begin a probe if the reward promises enough and no other is being played."""
        if self.arm is not None or self._surrogate.two_valued:  # one of two values promises nothing
            return
        own, noise = float(expected[arm]), self._surrogate.noise_variance
        if surprises(reward, own, noise) and promises(reward, own, float(expected.max()), noise):
            age = round_ - self._first_round
            self._probe = Probe(arm, wanted=max(SHORTEST_LOOK, self._length // LEAST_AGE_SHARE - age))

    def tell(self, arm: int, reward: float, expected: Floats) -> None:
        """A reward of an arm that was probed; the probe ends if the arm disappoints."""
        probe = self._probe
        if probe is None or probe.arm != arm or probe.told == probe.asked:  # not a round of this probe
            return
        if probe.disappoints(reward, float(expected.max()), self._surrogate.noise_variance):
            self._probe = None

    def lose(self, arms: Ints) -> None:
        """A probe does without rounds whose rewards will never come."""
        if self._probe is not None and self._probe.lose(int(np.count_nonzero(arms == self._probe.arm))):
            self._probe = None

    def export(self) -> dict[str, Any]:
        """The probe, if there is one."""
        return {"look": None if self._probe is None else self._probe.export()}

    def load(self, state: states.Reader, *, arms: int) -> None:
        """Inverse of `export`."""
        self._probe = None if state.raw("look") is None else Probe.load(state.reader("look"), arms)


def promises(reward: float, expected: float, best: float, noise_variance: float) -> bool:
    """Whether a reward of an arm of which `expected` was expected deserves a probe.

    The best arm is played anyway, and so are those that SHORTEST_LOOK rounds could not tell from it.

    >>> promises(0.9, 0.1, 0.8, 0.01), promises(0.7, 0.1, 0.8, 0.01), promises(0.9, 0.75, 0.8, 0.01)
    (True, False, False)
    """
    told_apart = best - expected > math.sqrt(noise_variance / SHORTEST_LOOK)
    return told_apart and reward > best and surprises(reward, expected, noise_variance)


def surprises(reward: float, expected: float, noise_variance: float) -> bool:
    """Whether a reward is far beyond what was expected: seldom so, and found without looking at all arms."""
    return reward - expected > _SURPRISE * math.sqrt(noise_variance)


_LEAST_FALSE_ALARM = 1e-300  # below it thresholds would overflow


class CalibratedOPKB(BlockPolicy):
    """ADA-OPKB without constants: one number to set, the probability of ever restarting without a change.

    Epochs, blocks, laws and replays are those of `AdaOPKB`. Its constants are derived here from the noise,
    the size of the signal and the length scale, all estimated (`surrogate`), and no horizon is needed.
    Changes are found by ranks: every law, every cell of neighbouring arms and every arm has a conformal martingale of
    its residuals or rewards, which is checked after every reward, and a restart keeps the rounds that belong to the
    new epoch. The record of a change says which one fired (`Change.stream`), with which evidence (`statistic`, at least
    `threshold`), and since when (`interval`).

    What is proved, in both modes: as long as an arm's rewards are independent draws of one distribution, the
    probability that a martingale ever fires is at most `false_alarm`, for every noise, kernel, number of rounds and
    policy. Rewards may come late, and be lost, if how late and how often depends neither on the arm nor on the reward;
    if it does (failures told after a timeout), `order="asked"` keeps the guarantee. What is not proved: that every
    change is found. One is missed as long as it leaves ranks as they were, or falls on arms that are not played.

    - Practical mode (default): gaps come from the posterior mean, widths are one standard error, a law is chosen for
      what it adds to what the epoch knows, an arm with surprising rewards is probed (`SurpriseProbes`),
      and a new epoch goes on with the old mean where that fits. No bound on its regret is proved.
    - Theory mode: gaps come from residual IPS, widths hold for all arms at once, mixing bounds all importance weights
      and nothing is probed. With `kernel="given"` the paper's analysis of OPKB applies with residuals for
      rewards and the effective dimension for the information gain. The paper's test of gaps runs beside the
      martingales, with half of `false_alarm` and empirical Bernstein widths, whose bound holds for noise and a kernel
      as believed.

    Parameters
    ----------
    horizon : not needed; with one, more rounds are refused
    false_alarm : probability of ever restarting as long as nothing changes, in (0, 1)
    mode : "practical" or "theory", see above
    kernel : "auto" chooses among the kernel of the arms, length scales an octave apart and independent arms; "given"
        believes the arms' kernel. Arms made from a kernel matrix or from features have no points, hence no length
        scales
    others : see `Policy`

    Take order="asked" where how late rewards come depends on the arm or on the reward.

    Rounds with a mask that took mass away count neither for blocks nor for streams, as in the whole OPKB family: under
    a standing mask nothing is learned. Build the policy on the arms that can be played.

    A round costs the same however long the epoch, and the state is bounded up to the logarithm of its rounds: ranks
    beyond some 2,000 numbers of a stream are those of an urn, which keeps the promise exactly
    (`driftbandits.detection.ranks`), and rewards are kept one by one for the last 1,000 rounds or two, before that by
    spans of time (`driftbandits.detection.ledger`). A change that is found later than that is told from what was before
    to within a quarter of the rounds since.

    Rewards of two values (0 or 1, 0 or a price) are detected: signals are then measured from the success rate,
    a single success begins no probe, and every arm's martingale bets on shares too, which see rates change. Say
    `reward_range=(0, 1)` for them.

    >>> import numpy as np
    >>> arms = ArmSet(np.linspace(0, 1, 20)[:, None])
    >>> policy = CalibratedOPKB(arms, false_alarm=0.05, seed=0)
    >>> for t in range(1000):
    ...     choice = policy.ask()
    ...     best = 4 if t < 600 else 15
    ...     policy.tell(choice.id, 0.5 - 0.04 * abs(choice.arm - best))
    >>> [(change.interval[0], change.round) for change in policy.changes]
    [(600, 606)]
    >>> int(policy.estimate().argmax())
    15
    """

    family = Family.NOTHING_TO_SET
    behaviour = 2  # 2: features and cells of mirrored arms chosen alike on every machine
    reports_changes = True

    def __init__(
        self,
        arms: ArmSet,
        *,
        false_alarm: float = 0.1,
        mode: Literal["practical", "theory"] = "practical",
        kernel: Literal["auto", "given"] = "auto",
        **common: Unpack[CommonSettings],
    ) -> None:
        self.false_alarm = check_probability("false_alarm", false_alarm, least=_LEAST_FALSE_ALARM)
        self.mode = check_word("mode", mode, ("practical", "theory"))
        self.kernel = check_word("kernel", kernel, ("auto", "given"), cure="a kernel of your own goes into the ArmSet")
        seed = common["seed"] = check_seed(common.get("seed", 0))  # ranks are smoothed by draws from it
        surrogate = self._surrogate = Surrogate(arms, auto=self.kernel == "auto", keeps=self.mode == "practical")
        level, ranks = self.false_alarm, stream(seed, "ranks")
        if self.mode == "practical":
            mean = PosteriorMean(surrogate)
            constants = PracticalConstants(surrogate, mean, arms=len(arms))
            streams = Streams(level, len(arms), ranks, belief=surrogate, cells=constants.cells)
            parts = Parts(surrogate, constants, mean, streams, SurpriseProbes(surrogate))
        else:
            ips = ResidualIPS(surrogate)
            bounded = TheoryConstants(surrogate, ips, arms=len(arms))
            streams = StreamsAndGaps(level, len(arms), ranks, belief=surrogate, cells=bounded.cells, facts=bounded)
            parts = Parts(surrogate, bounded, ips, streams)
        self._streams = streams
        self._said_amounts = False  # not saved: who goes on may hear it once more
        super().__init__(arms, parts, **common)

    def _learn(self, feedback: Feedback) -> None:
        super()._learn(feedback)
        self._notice_amounts()

    def _learn_one(self, row: Row, reward: float) -> None:
        super()._learn_one(row, reward)
        self._notice_amounts()

    def _notice_amounts(self) -> None:
        if self._said_amounts or not self._surrogate.amounts_vary:
            return
        self._said_amounts = True
        self._monitor.notices.append(
            DoubtWarning(
                f"most rewards are {self.reward_range[0]:g} and the others pay amounts that vary: CalibratedOPKB "
                f"learns them as means with noise of one size, so that rare successes say less than they could, and "
                f"changes are found late. AutoBandit learns amounts that vary"
            )
        )

    @property
    @guarded
    def noise_variance(self) -> float:
        """Variance of the noise as estimated when the present block began, where rewards span [-1, 1]."""
        self._begin_once()
        return self._surrogate.noise_variance

    @guarded
    def nats_to_fire(self, rounds: int) -> float:
        """Evidence that one bet on |e| needs to fire.

        Parameters
        ----------
        rounds : of a law after which the bet was begun

        Returns
        -------
        float
            Nats.

        Raises
        ------
        InputError
            If `rounds` is not a positive whole number.
        """
        self._begin_once()
        return self._nats_to_fire(check_count("rounds", rounds))

    def _nats_to_fire(self, rounds: int) -> float:
        law = int(math.log2(rounds / self._levels.block_size + 1.0))
        return self._streams.nats_to_fire(law, rounds)

    @guarded
    def rounds_to_find(self, size: float | None = None) -> int:
        """Least rounds in which a change of a size can be found, see `first_detectable_horizon`.

        Parameters
        ----------
        size : by which the reward of an arm moves, in the user's units; by default half the reward range

        Returns
        -------
        int
        """
        self._begin_once()
        internal = 1.0 if size is None else self._scale.inward_size(size)
        return rounds_by_ranks(internal / math.sqrt(self._surrogate.noise_variance), self._nats_to_fire)

    def _interval(self) -> tuple[Floats, Floats] | None:
        """By the process believed in; residual IPS, the estimate of the theory mode, has none."""
        if self.mode == "theory":
            return None
        posterior = self._surrogate.posterior()
        return around(posterior.mean, posterior.deviation_of(np.arange(len(self.arms))))

    def _glimpse(self, arms: Ints) -> Sequence[Floats]:
        """As many arms as are followed: of all, they would take as long as many rounds."""
        if self.mode == "theory":
            return super()._glimpse(arms)
        posterior = self._surrogate.posterior()
        mean = posterior.mean_of(arms)
        return [mean, *around(mean, posterior.deviation_of(arms))]

    def _carry(self, old: Self, change: ArmsChange) -> None:
        self._streams.draw_as(old._streams)
        super()._carry(old, change)
