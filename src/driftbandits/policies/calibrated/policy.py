"""CalibratedOPKB: ADA-OPKB without constants, and with alarms that carry a guarantee."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, Self, Unpack

import numpy as np

from driftbandits.arms import ArmSet
from driftbandits.checks import check_count, check_probability, check_word
from driftbandits.detection.horizons import rounds_by_ranks
from driftbandits.detection.streams import Streams
from driftbandits.detection.streams_and_gaps import StreamsAndGaps
from driftbandits.policies.blocks.engine import BlockPolicy
from driftbandits.policies.blocks.parts import Parts
from driftbandits.policies.calibrated.constants import PracticalConstants, TheoryConstants
from driftbandits.policies.calibrated.estimators import PosteriorMean, ResidualIPS
from driftbandits.policies.calibrated.looks import SecondLooks
from driftbandits.policies.calibrated.surrogate import Surrogate
from driftbandits.policies.core.arms_change import ArmsChange
from driftbandits.policies.core.facts import Family
from driftbandits.policies.core.guard import guarded
from driftbandits.policies.core.looking import around
from driftbandits.policies.core.settings import CommonSettings
from driftbandits.seeding import check_seed, stream
from driftbandits.types import Floats, Ints

_LEAST_FALSE_ALARM = 1e-300  # below it thresholds would overflow


class CalibratedOPKB(BlockPolicy):
    """ADA-OPKB without constants: one number to set, the probability of ever restarting without a change.

    Epochs, blocks, laws and replays are those of `AdaOPKB`. What that takes as constants follows here from the noise,
    the size of the signal and the length scale, all estimated (`policies/calibrated`), and no horizon is needed.
    Changes are found by ranks: every law, every cell of neighbouring arms and every arm has a conformal martingale of
    its residuals or rewards, which is looked at after every reward, and a restart keeps the rounds that belong to the
    new epoch. The record of a change says which one fired (`Change.stream`), with which evidence (`statistic`, at least
    `threshold`), and since when (`interval`).

    What is proved, in both modes: as long as an arm's rewards are independent draws of one distribution, the
    probability that a martingale ever fires is at most `false_alarm`, for every noise, kernel, number of rounds and
    policy. Rewards may come late, and be lost, if how late and how often depends neither on the arm nor on the reward;
    if it does (failures told after a timeout), `order="asked"` keeps the guarantee. What is not proved: that every
    change is found. One is missed as long as it leaves ranks as they were, or falls on arms that are not played.

    - Practical mode (default): gaps come from the posterior mean, widths are one standard error, a law is chosen for
      what it adds to what the epoch knows, an arm that surprises is looked at again (`policies/calibrated/looks.py`),
      and a new epoch goes on with the old mean where that fits. No bound on its regret is proved.
    - Theory mode: gaps come from residual IPS, widths hold for all arms at once, mixing bounds all importance weights
      and nothing is looked at twice. With `kernel="given"` the paper's analysis of OPKB applies with residuals for
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

    A round costs the same however long the epoch, and the state is bounded but for the logarithm of its rounds: ranks
    beyond some 2,000 numbers of a stream are those of an urn, which keeps the promise exactly
    (`driftbandits.detection.ranks`), and rewards are kept one by one for the last 1,000 rounds or two, before that by
    spans of time (`driftbandits.detection.ledger`). A change that is found later than that is told from what was before
    to within a quarter of the rounds since.

    Rewards of two values (0 or 1, 0 or a price) are noticed: signals are then looked for around the rate of successes,
    a single success begins no second look, and every arm's martingale bets on shares too, which see rates change. Say
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

    colour = "#117733"
    family = Family.NOTHING_TO_SET
    behaviour = 2  # 2: features and cells of mirrored arms chosen alike on every machine
    reports_changes = True
    microseconds_per_round = 60.0

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
            parts = Parts(surrogate, constants, mean, streams, SecondLooks(surrogate))
        else:
            ips = ResidualIPS(surrogate)
            bounded = TheoryConstants(surrogate, ips, arms=len(arms))
            streams = StreamsAndGaps(level, len(arms), ranks, belief=surrogate, cells=bounded.cells, facts=bounded)
            parts = Parts(surrogate, bounded, ips, streams)
        self._streams = streams
        super().__init__(arms, parts, **common)

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

    def _settings(self) -> dict[str, Any]:
        return {"false_alarm": self.false_alarm, "mode": self.mode, "kernel": self.kernel}
