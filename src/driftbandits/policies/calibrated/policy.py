"""CalibratedOPKB: ADA-OPKB without constants, and with alarms that carry a guarantee."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal, Unpack

import numpy as np
import numpy.typing as npt

from driftbandits import state as states
from driftbandits.arms import ArmSet
from driftbandits.checks import check_count, check_probability
from driftbandits.design import Design, effective_dimension
from driftbandits.detection.detector import Found
from driftbandits.detection.gaps import gaps
from driftbandits.detection.streams import Streams, part_arms
from driftbandits.detection.streams_and_gaps import StreamsAndGaps
from driftbandits.errors import InputError
from driftbandits.estimation import law_factor
from driftbandits.policies.blocks.engine import BlockPolicy, best_design
from driftbandits.policies.calibrated.closed_forms import (
    BUDGET,
    SHORTEST,
    Calibration,
    block_size,
    least_mixing,
    replay_scale,
    ridge,
)
from driftbandits.policies.calibrated.looks import AGE, LOOKS, Look, promises
from driftbandits.policies.calibrated.surrogate import Surrogate
from driftbandits.policies.core.guard import guarded
from driftbandits.policies.core.pending import Feedback, Row
from driftbandits.policies.core.settings import CommonSettings
from driftbandits.seeding import stream
from driftbandits.state.plausible import ROUNDING
from driftbandits.types import Bools, Decisions, Floats, Ints

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

    - Practice mode (default): gaps come from the posterior mean, widths are one standard error, a law is chosen for
      what it adds to what the epoch knows, an arm that surprises is looked at again (`policies/calibrated/looks.py`),
      and a new epoch goes on with the old mean where that fits. No bound on its regret is proved.
    - Theory mode: gaps come from residual IPS, widths hold for all arms at once, mixing bounds all importance weights
      and nothing is looked at twice. With `kernel="given"` the paper's analysis of OPKB applies with residuals for
      rewards and the effective dimension for the information gain. The paper's test of gaps runs beside the
      martingales, with half of `false_alarm` and empirical Bernstein widths, whose bound holds for noise and a kernel
      as believed.

    Parameters
    ----------
    false_alarm : probability of ever restarting as long as nothing changes, in (0, 1)
    mode : "practice" or "theory", see above
    kernel : "auto" chooses among the kernel of the arms, length scales an octave apart and independent arms; "given"
        believes the arms' kernel. Arms made from a kernel matrix or from features have no points, hence no length
        scales
    order : in which rewards that come late are ranked: as they are "told", at once, or as they were "asked", once all
        earlier rounds are told or forgotten. Take "asked" where how late depends on the arm or on the reward
    others : see `Policy`; `horizon` is not needed

    Rounds with a mask that took mass away count neither for blocks nor for streams, as in the whole OPKB family: under
    a standing mask nothing is learned. Build the policy on the arms that can be played. Memory and saved state grow
    with the rounds of the epoch, since ranks need all of them.

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

    _source: Surrogate
    _levels: Calibration
    _detector: Streams

    def __init__(
        self,
        arms: ArmSet,
        *,
        false_alarm: float = 0.1,
        mode: Literal["practice", "theory"] = "practice",
        kernel: Literal["auto", "given"] = "auto",
        order: Literal["told", "asked"] = "told",
        **common: Unpack[CommonSettings],
    ) -> None:
        super().__init__(arms, **common)
        self.false_alarm = check_probability("false_alarm", false_alarm, least=_LEAST_FALSE_ALARM)
        if not isinstance(mode, str) or mode not in ("practice", "theory"):
            raise InputError(f"mode must be 'practice' or 'theory', got {mode!r}")
        if not isinstance(kernel, str) or kernel not in ("auto", "given"):
            raise InputError(
                f"kernel must be 'auto' or 'given', got {kernel!r}; a kernel of your own goes into the ArmSet"
            )
        if not isinstance(order, str) or order not in ("told", "asked"):
            raise InputError(f"order must be 'told' or 'asked', got {order!r}")
        self.order: Literal["told", "asked"] = order
        self.mode: Literal["practice", "theory"] = mode
        self.kernel: Literal["auto", "given"] = kernel
        self._look: Look | None = None
        self._block_start = 0  # round

    # --- the parts ----------------------------------------------------------------------------------------------

    def _assemble(self, horizon: int | None) -> None:
        self._make_parts()
        self._source.begin()

    def _make_parts(self) -> None:
        practice = self.mode == "practice"
        self._source = Surrogate(self.arms, auto=self.kernel == "auto", keeps=practice)
        detector = Streams if practice else StreamsAndGaps
        generator, holds = stream(self.seed, "ranks"), self.order == "asked"
        self._detector = detector(self.false_alarm, len(self.arms), generator, holds=holds)
        self._designs: dict[tuple[int, float], tuple[Floats, float]] = {}

    def _design_at(self, regulariser: float) -> tuple[Floats, float]:
        """Optimal design of the kernel believed, and its effective dimension."""
        key = (self._source.kernel, regulariser)
        if key not in self._designs:
            law = super()._solve(regulariser).probabilities
            dimension = effective_dimension(self._source.present, regulariser=regulariser, probabilities=law)
            self._designs[key] = (law, dimension)
        return self._designs[key]

    def _levels_for(self, block: int) -> Calibration:
        source = self._source
        noise, signal = source.noise, source.signal
        if block == 0:
            size = block_size(lambda regulariser: self._design_at(regulariser)[1], noise, signal)
        else:
            size = self._levels.block_size
        regulariser = ridge(noise, signal, size * 2.0**block)
        dimension = self._design_at(regulariser)[1]
        behind = max(source.told, size)  # rounds behind the gaps
        width = math.sqrt(noise * self._design_at(ridge(noise, signal, behind))[1] / behind)
        self._inform_detector(size, dimension)
        if self.mode == "theory":
            width *= math.sqrt(2.0 * math.log(2.0 * len(self.arms)))
            return Calibration(size, regulariser, dimension, width, good=2.0 * width)
        if block == 0:
            width = math.hypot(width, math.sqrt(source.shift))
        return Calibration(size, regulariser, dimension, width, good=width)

    def _inform_detector(self, size: int, dimension: float) -> None:
        self._detector.cells = part_arms(self._source.present, dimension)
        if isinstance(self._detector, StreamsAndGaps):
            test = self._detector.gaps
            test.block_size, test.noise, test.first_round = size, self._source.noise, self.rounds

    @property
    @guarded
    def noise_variance(self) -> float:
        """Variance of the noise as estimated when the present block began, where rewards span [-1, 1]."""
        self._begin_once()
        return self._source.noise

    @guarded
    def nats_to_fire(self, rounds: int) -> float:
        """Evidence, in nats, that one bet on |e| begun after so many rounds of a law needs to fire."""
        self._begin_once()
        law = int(math.log2(check_count("rounds", rounds) / self._levels.block_size + 1.0))
        return self._detector.nats_to_fire(law, rounds)

    def _optimal_design(self, moved: bool) -> Floats:
        if self._epoch.number == 0 and not self._epoch.laws:  # nothing is known: as if arms were hardly alike
            return best_design(self._source.first, self._levels.regulariser, None, None).probabilities
        return self._design_at(self._levels.regulariser)[0]

    def _begins_informed(self) -> bool:
        source = self._source
        return self.mode == "practice" and (source.follows or source.told >= self._levels.block_size)

    def _solve(self, regulariser: float, *, costs: Floats | None = None, candidates: Ints | None = None) -> Design:
        """In practice mode a law is chosen for what it adds to what the epoch knows, in theory mode for itself."""
        if self.mode == "theory":
            return super()._solve(regulariser, costs=costs, candidates=candidates)
        features = self._source.present
        known = self._source.since(0).counts / (self._levels.block_size * 2.0 ** len(self._epoch.laws))
        whitened = law_factor(features, known, regulariser).half_solve(features.T).T
        return best_design(np.ascontiguousarray(whitened), 1.0, costs, candidates)

    def _rewards(self) -> Floats:
        if self.mode == "theory" and self._epoch.blocks:
            return self._epoch.so_far()
        return self._source.mean()

    def _baseline(self) -> Floats:
        return self._source.mean()

    def _mixing(self, block: int, law: Floats, design: Floats, estimated: Floats) -> float:
        levels = self._levels
        if self.mode == "theory":
            largest = math.sqrt(levels.block_size * 2.0**block * levels.dimension)
            return least_mixing(self._source.present, law, design, levels.regulariser, largest)
        return BUDGET * min(1.0, levels.width / max(float(design @ estimated), 1e-12))

    def _replay_scale(self, block: int) -> float:
        return replay_scale(self._epoch.laws, gaps(self._rewards()))

    def _describe(self, found: Found) -> None:
        """Of the arms that were watched, those played since; before is what was believed then, after their mean."""
        arms: Ints = np.array(found.verdict.arms)
        recent = self._source.since(found.first_round)
        arms = arms[recent.counts[arms] > 0]
        verdict = dataclasses.replace(found.verdict, arms=tuple(arms.tolist()))
        before = self._source.mean_before(found.first_round)[arms]
        after = recent.sums[arms] / recent.counts[arms]
        super()._describe(dataclasses.replace(found, verdict=verdict, before=before, after=after))

    # --- second looks -------------------------------------------------------------------------------------------

    def _new_block(self) -> None:
        self._look = None
        self._block_start = self.rounds
        super()._new_block()

    def _looking(self) -> Look | None:
        """The look whose arm is to be played now."""
        return self._look if self._look is not None and self._look.left > 0 else None

    def _law(self) -> Floats:
        look = self._looking()
        if look is None:
            return super()._law()
        law = np.zeros(len(self.arms))
        law[look.arm] = 1.0
        return law

    def _stamp(self) -> tuple[int, int]:
        look = self._looking()
        return super()._stamp() if look is None else (-1 - look.arm, self._tag)  # every arm's own law has a number

    def _steady(self) -> int:
        look = self._looking()
        return super()._steady() if look is None else look.left

    def _advance(self, count: int) -> None:
        look = self._looking()
        if look is None:
            super()._advance(count)
        else:
            look.asked += count

    def _draw(self, wanted: int, mask: Bools | None) -> Decisions:
        self._move()
        if self._look is not None and mask is not None and not mask[self._look.arm]:
            self._look = None
        return super()._draw(wanted, mask)

    def _due(self) -> bool:
        kept = self._look is not None and self._look.kept
        return super()._due() or (kept and not self._finished)

    def _turn(self) -> None:
        kept = self._look is not None and self._look.kept
        if kept and not self._detector.fired and self._phase_left() > 0:
            self._new_block()
        else:
            super()._turn()

    def _learn(self, feedback: Feedback) -> None:
        for row, reward in feedback.rows():
            self._take_in(row, reward)
        self._release()

    def _learn_one(self, row: Row, reward: float) -> None:
        self._take_in(row, reward)
        self._release()

    def _release(self) -> None:
        """Let ranks that wait for earlier rounds be taken, where these are told by now."""
        if self.order == "asked":
            oldest = self._pending.oldest()
            self._detector.release(math.inf if oldest is None else oldest)

    def _take_in(self, row: Row, reward: float) -> None:
        epoch = self._epoch
        if row.law < 0:
            self._learn_look(row, reward)
            return
        if row.tag < epoch.tags[-1]:
            super()._learn(Feedback.single(row, reward))
            return
        super()._learn_one(row, reward)
        if self.mode == "practice" and len(epoch.laws) > 1 and self._looking() is None:
            expected = self._expected()
            if promises(reward, float(expected[row.arm]), float(expected.max()), self._source.noise):
                age = row.id - self._block_start
                length = self._levels.block_size * 2 ** (len(epoch.laws) - 1)
                self._look = Look(row.arm, wanted=max(LOOKS, length // AGE - age))

    def _lose(self, rows: npt.NDArray[np.void]) -> None:
        """A look does without rounds whose rewards will never come."""
        if self._look is not None and self._look.lose(int(np.count_nonzero(rows["law"] == -1 - self._look.arm))):
            self._look = None
        self._release()

    def _learn_look(self, row: Row, reward: float) -> None:
        if row.tag < self._epoch.tags[0]:  # a closed epoch, or a masked round
            self.late += row.tag >= 0
            return
        self._source.observe_one(row.arm, reward, row.id)
        self._detector.see_apart(row.arm, reward, row.id)
        look = self._look
        if look is None or look.arm != row.arm or look.told == look.asked:  # not a round of this look
            return
        if look.disappoints(reward, float(self._expected().max()), self._source.noise):
            self._look = None

    def _expected(self) -> Floats:
        """What the present block expects of every arm."""
        return np.asarray(self._epoch.baselines[-1])

    # --- state --------------------------------------------------------------------------------------------------

    def _settings(self) -> dict[str, Any]:
        return {"false_alarm": self.false_alarm, "mode": self.mode, "kernel": self.kernel, "order": self.order}

    def _export_levels(self) -> dict[str, Any]:
        return dataclasses.asdict(self._levels)

    def _export(self) -> dict[str, Any]:
        look = None if self._look is None else self._look.export()
        return {**super()._export(), "block_start": self._block_start, "look": look}

    def _reassemble(self, source: states.Reader, levels: states.Reader) -> None:
        self._make_parts()
        self._source.load(source)
        numbers = [levels.number(name) for name in ("regulariser", "dimension", "width", "good")]
        states.check(all(number > 0 for number in numbers), "constants")
        size = levels.integer("block_size", low=SHORTEST, high=max(SHORTEST, len(self.arms)))
        self._levels = Calibration(size, *numbers)

    def _import(self, state: states.Reader) -> None:
        super()._import(state)
        self._check_constants()
        self._detector.check_rounds(self._epoch, self.rounds)
        states.check(all(round_ < self.rounds for round_ in self._source._rounds), "rounds of the epoch")
        states.check(all(baseline is not None for baseline in self._epoch.baselines), "baselines")
        if isinstance(self._detector, StreamsAndGaps):
            self._detector.gaps.check_open(
                self._open, rounds=self.rounds, block_size=self._levels.block_size, noise=self._source.noise
            )
        first = next(item.first_round for item in self._open if item.replay.index == self._schedule.block)
        self._block_start = state.integer("block_start", low=first, high=first)
        self._look = None if state.raw("look") is None else Look.load(state.reader("look"), len(self.arms))
        states.check(self._look is None or self.mode == "practice", "look")

    def _check_constants(self) -> None:
        """Refuse constants far from those that noise, signal and the length of the block lead to."""
        levels, source = self._levels, self._source
        meant = ridge(source.noise, source.signal, levels.block_size * 2.0 ** (len(self._epoch.laws) - 1))
        states.check(0.6 < levels.regulariser / meant < 1.6, "regulariser")  # a rounding to powers of sqrt(2)
        states.check(levels.dimension <= (1.0 + ROUNDING) * len(self.arms), "dimension")
        states.check(1e-100 < levels.width < 1e3, "width")
        good = 2.0 * levels.width if self.mode == "theory" else levels.width
        states.check(math.isclose(levels.good, good, rel_tol=ROUNDING), "good gap")

    def _check_pending(self, rows: npt.NDArray[np.void]) -> None:
        """Rounds of a look have the number of an arm in the place of a law."""
        looks = rows[rows["law"] < 0]
        states.check(bool((looks["law"] == -1 - looks["arm"]).all()), "arm of a pending look")
        super()._check_pending(rows[rows["law"] >= 0])
