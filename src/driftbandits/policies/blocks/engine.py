"""The block engine of the OPKB family: laws from optimisation, replays, change detection, restarts.

An epoch runs in blocks j = 0, 1, ... of 2^j E rounds. Block 0 plays the optimal design; block j >= 1 plays a law that
balances the gaps estimated from the epoch so far against exploration. A watching policy replays earlier laws inside a
block, and starts a new epoch when its detector finds that something has changed.

Four parts are exchangeable:

part        where                      OPKB, ADA-OPKB, OPNN, ADA-OPNN        CalibratedOPKB
features    _source                    of the kernel, or of a network        of the likeliest length scale
constants   _levels, _levels_for       of `Constants`, once a horizon        closed forms, at every block
estimator   _rewards, _baseline        IPS                                   posterior mean, or residual IPS
detector    _detector                  gaps of replays (or none)             conformal martingales of residuals

symbol     name               shape
phi^(j)    _source.present    (N, r), for every round of the epoch while block j lasts
P^(m)      _epoch.laws[m]     (N,)
I          an open Replay     rewards told of a replay that has not ended
"""

from __future__ import annotations

import dataclasses
import warnings
from abc import abstractmethod
from typing import Any, Protocol, Unpack

import numpy as np
import numpy.typing as npt

from driftbandits import state as states
from driftbandits.arms import ArmSet
from driftbandits.design import Design, solve_design
from driftbandits.detection.detector import Detector, Found
from driftbandits.detection.gaps import gaps
from driftbandits.errors import ConvergenceError, ConvergenceWarning, StateError
from driftbandits.estimation import Sums
from driftbandits.policies.blocks.epoch import Epoch, OpenReplay, export_sums, read_sums
from driftbandits.policies.core.base import Policy
from driftbandits.policies.core.pending import Feedback, Row
from driftbandits.policies.core.settings import CommonSettings
from driftbandits.policies.paper.features import FeatureSource
from driftbandits.schedule import Replay, Schedule, build_schedule, draw_schedule, read_replay
from driftbandits.seeding import generator_from_state, generator_state, stream
from driftbandits.state.plausible import FARTHEST, told_at_most
from driftbandits.types import Floats, Ints


class BlockLevels(Protocol):
    """The constants of the present block."""

    @property
    def block_size(self) -> int:
        """E, for all blocks of the epoch."""

    @property
    def regulariser(self) -> float:
        """lambda."""

    def beta(self, block: int) -> float:
        """Weight of exploitation."""

    def good_gap(self, block: int) -> float:
        """Largest estimated gap of a good arm."""


class BlockPolicy(Policy):
    """Epochs, blocks, stretches; the parts come from `PaperBlockPolicy` and `CalibratedOPKB`."""

    counts_masked = False
    share: float = 0.5  # of the optimal design over the good arms in OP's answer
    lowest_index: int = 0  # that is replayed

    _source: FeatureSource
    _levels: BlockLevels
    _detector: Detector | None

    def __init__(self, arms: ArmSet, **common: Unpack[CommonSettings]) -> None:
        super().__init__(arms, **common)
        self._divisor = 1.0  # what rewards on [-1, 1] are divided by
        self._coins = stream(self.seed, "schedule")
        self._tag = 0
        self._epoch = Epoch(-1, 0)

    # --- the parts ----------------------------------------------------------------------------------------------

    @abstractmethod
    def _assemble(self, horizon: int | None) -> None:
        """Make the source, the constants and the detector."""

    @abstractmethod
    def _levels_for(self, block: int) -> BlockLevels:
        """The constants of a block that begins now."""

    @abstractmethod
    def _optimal_design(self, moved: bool) -> Floats:
        """pi(X) by the present features, which have `moved` since the last block or not."""

    @abstractmethod
    def _rewards(self) -> Floats:
        """What the epoch so far says of every arm's reward: the gaps of the next law come from it."""

    def _baseline(self) -> Floats | None:
        """What is taken off the rewards of a law that begins now."""
        return None

    @abstractmethod
    def _mixing(self, block: int, law: Floats, design: Floats, estimated: Floats) -> float:
        """mu_j: the share of the optimal design in the law of a block."""

    def _replay_scale(self, block: int) -> float:
        """What the chances of replays are multiplied by."""
        return 1.0

    def _begins_informed(self) -> bool:
        """Whether a new epoch knows enough to begin with a law of OP instead of the optimal design."""
        return False

    # --- epochs, blocks, stretches ------------------------------------------------------------------------------

    def _start(self, horizon: int | None) -> None:
        self._assemble(horizon)
        self._new_epoch()

    def _new_epoch(self, since: int | None = None) -> None:
        """Start anew; rounds from `since` on are known to belong to the new epoch already."""
        old = self._epoch
        self._source.forget(since)
        self._epoch = Epoch(old.number + 1, old.law_base + len(old.laws))
        self._finished = False
        if self._detector is not None:
            self._detector.begin()
        self._new_block()

    def _new_block(self) -> None:
        epoch = self._epoch
        block = len(epoch.laws)
        moved = self._source.advance()
        self._levels = self._levels_for(block)
        if moved or block == 0 or epoch.regulariser != self._levels.regulariser:
            epoch.view(self._source.present, self._levels.regulariser)
        epoch.add(self._next_law(block, self._optimal_design(moved)), self._baseline(), self._tag + 1)
        if self._detector is not None:
            self._detector.open(epoch)
        self._schedule = self._draw_schedule(block)
        self._open: list[OpenReplay] = []
        self._new_stretch(0)

    def _draw_schedule(self, block: int) -> Schedule:
        if self._detector is not None:
            return draw_schedule(block, self._coins, lowest=self.lowest_index, scale=self._replay_scale(block))
        return build_schedule(block, [Replay(start=0, stop=2**block, index=block)])

    def _new_stretch(self, number: int) -> None:
        self._stretch = number
        self._length = self._stretch_length()
        self._position = 0
        self._tag += 1
        for replay in self._schedule.starting(int(self._schedule.edges[number])):
            whole = replay.index == self._schedule.block
            sums = self._epoch.blocks[-1] if whole else Sums.empty(replay.index + 1, len(self.arms))
            self._open.append(OpenReplay(replay, first_tag=self._tag, first_round=self.rounds, sums=sums))

    def _stretch_length(self) -> int:
        start, stop = self._schedule.edges[self._stretch : self._stretch + 2]
        return int(stop - start) * self._levels.block_size

    def _next_law(self, block: int, design: Floats) -> Floats:
        """P^(j): the paper's OP on the gaps of the epoch so far, mixed with the optimal design."""
        levels = self._levels
        if block == 0 and not self._begins_informed():
            return design
        estimated = gaps(self._rewards())
        best = self._solve(levels.regulariser, costs=0.5 * levels.beta(block) * estimated).probabilities
        good = np.flatnonzero(estimated <= levels.good_gap(block))
        everyone = len(good) == len(self.arms)
        spread = design if everyone else self._solve(levels.regulariser, candidates=good).probabilities
        answer = (1.0 - self.share) * best + self.share * spread
        mixing = self._mixing(block, answer, design, estimated)
        law = (1.0 - mixing) * answer + mixing * design
        return np.asarray(law / law.sum())

    def _solve(self, regulariser: float, *, costs: Floats | None = None, candidates: Ints | None = None) -> Design:
        """The law that costs least for what it teaches, by the present features."""
        return best_design(self._source.present, regulariser, costs, candidates)

    # --- the hooks of Policy ------------------------------------------------------------------------------------

    def _index(self) -> int:
        """m_t: the law followed in the present stretch."""
        return int(self._schedule.indices[self._stretch])

    def _law(self) -> Floats:
        return self._epoch.laws[self._index()]

    def _stamp(self) -> tuple[int, int]:
        return self._epoch.law_base + self._index(), self._tag

    def _steady(self) -> int:
        return max(self._length - self._position, 1)

    def _steady_rounds(self) -> int:
        self._begin_once()
        return 1 if self._detector is not None and self._detector.prompt else super()._steady_rounds()

    def _advance(self, count: int) -> None:
        self._position += count

    def _due(self) -> bool:
        fired = self._detector is not None and self._detector.fired
        return not self._finished and (fired or self._position == self._length)

    def _turn(self) -> None:
        """A stretch is over, or a change was found: restart, open the next block or the next stretch."""
        slot = int(self._schedule.edges[self._stretch + 1])
        over = self._position == self._length
        ended = [item for item in self._open if over and item.replay.stop == slot]
        found = None if self._detector is None else self._detector.verdict(self._epoch, ended)
        if found is not None:
            self._describe(found)
        if self._phase_left() == 0:
            self._finished = True
        elif found is not None:
            self._new_epoch(found.first_round)
        elif self._stretch + 1 == len(self._schedule):
            with self._still_whole():  # a training takes seconds, and may fail
                self._source.prepare()
            self._new_block()
        else:
            self._open = [item for item in self._open if item.replay.stop != slot]
            self._new_stretch(self._stretch + 1)

    def _learn(self, feedback: Feedback) -> None:
        """Add rewards to the block they were asked in and to every open replay that covers their round."""
        epoch = self._epoch
        late = (feedback.tags >= 0) & (feedback.tags < epoch.tags[0])  # an epoch already closed
        self.late += int(np.count_nonzero(late))
        live = feedback.tags >= epoch.tags[0]  # tag -1: a mask had removed mass
        tags, arms, rounds = feedback.tags[live], feedback.arms[live], feedback.ids[live]
        laws, rewards = feedback.laws[live] - epoch.law_base, feedback.rewards[live] / self._divisor
        self._source.observe(arms, rewards, rounds)
        values = self._less_baseline(laws, arms, rewards)
        blocks = np.searchsorted(epoch.tags, tags, side="right") - 1
        last = len(epoch.blocks) - 1
        for item in self._open:  # the present block itself is one of them
            covered = tags >= item.first_tag
            item.sums.add(laws[covered], arms[covered], values[covered])
        for block in np.unique(blocks[blocks < last]):
            there = blocks == block
            epoch.tell_earlier(int(block)).add(laws[there], arms[there], values[there])
        if self._detector is not None and self._detector.prompt:
            columns = (laws, arms, rewards, values, rounds)
            for row in zip(*(column.tolist() for column in columns), strict=True):
                self._detector.see(*row)

    def _less_baseline(self, laws: Ints, arms: Ints, rewards: Floats) -> Floats:
        values = rewards
        for law, baseline in enumerate(self._epoch.baselines):
            if baseline is not None:
                values = np.where(laws == law, rewards - baseline[arms], values)
        return values

    def _learn_one(self, row: Row, reward: float) -> None:
        epoch = self._epoch
        if row.tag < epoch.tags[-1]:  # an earlier block, a closed epoch or a masked round
            super()._learn_one(row, reward)
            return
        law, arm, scaled = row.law - epoch.law_base, row.arm, reward / self._divisor
        self._source.observe_one(arm, scaled, row.id)
        baseline = epoch.baselines[law]
        value = scaled if baseline is None else scaled - float(baseline[arm])
        for item in self._open:
            if row.tag >= item.first_tag:
                item.sums.sums[law, arm] += value
                item.sums.counts[law] += 1
        if self._detector is not None and self._detector.prompt:
            self._detector.see(law, arm, scaled, value, row.id)

    def _estimate(self) -> Floats:
        return self._rewards() * self._divisor

    def _describe(self, found: Found) -> None:
        verdict, divisor = found.verdict, self._divisor
        self._report_change(
            epoch=self._epoch.number,
            block=self._schedule.block,
            interval=(found.first_round, self.rounds),
            compared_with=found.compared_with,
            statistic=verdict.statistic * divisor,
            threshold=verdict.threshold * divisor,
            arms=verdict.arms,
            before=found.before * divisor,
            after=found.after * divisor,
            stream=found.stream,
        )

    # --- state --------------------------------------------------------------------------------------------------

    @abstractmethod
    def _export_levels(self) -> dict[str, Any]:
        """The constants, as JSON values and arrays."""

    @abstractmethod
    def _reassemble(self, source: states.Reader, levels: states.Reader) -> None:
        """Make the parts from what the source and `_export_levels` gave."""

    def _export(self) -> dict[str, Any]:
        return {
            "levels": self._export_levels(),
            "source": self._source.export(),
            "detector": {} if self._detector is None else self._detector.export(),
            "epoch": self._epoch.export(),
            "coins": generator_state(self._coins),
            "tag": self._tag,
            "finished": self._finished,
            "stretch": self._stretch,
            "position": self._position,
            "replays": np.array([dataclasses.astuple(replay) for replay in self._schedule.replays]),
            "open": [
                {
                    "replay": list(dataclasses.astuple(item.replay)),
                    "first_tag": item.first_tag,
                    "first_round": item.first_round,
                    **export_sums(item.sums),
                }
                for item in self._open
            ],
        }

    def _import(self, state: states.Reader) -> None:
        self._reassemble(state.reader("source"), state.reader("levels"))
        self._coins = generator_from_state(state.raw("coins"))
        self._tag = state.integer("tag", low=1, high=FARTHEST)
        self._finished = state.flag("finished")
        states.check(not self._finished or self._phase_left() == 0, "end of the last block")
        self._epoch = Epoch.load(state.reader("epoch"), arms=len(self.arms), last_tag=self._tag)
        self._epoch.view(self._source.present, self._levels.regulariser)
        watched = state.reader("detector")
        if self._detector is not None:
            self._detector.load(watched, self._epoch)
        self._import_schedule(state)
        self._check_told()
        self._check_pending(self._pending.rows())

    def _import_schedule(self, state: states.Reader) -> None:
        epoch, block = self._epoch, len(self._epoch.laws) - 1
        replays = [read_replay(row.tolist(), block) for row in state.array("replays", np.int64, (None, 3))]
        if Replay(start=0, stop=2**block, index=block) not in replays:
            raise StateError("state.engine.replays lacks the whole block")
        states.check(len(set(replays)) == len(replays), "replays, of which one is there twice,")
        self._schedule = build_schedule(block, replays)
        self._stretch = state.integer("stretch", high=len(self._schedule) - 1)
        states.check(self._tag == epoch.tags[-1] + self._stretch, "tag")  # a tag a stretch
        self._length = self._stretch_length()
        self._position = state.integer("position", high=self._length)
        self._open = []
        for item in state.readers("open"):
            replay = read_replay(item.raw("replay"), block)
            whole = replay.index == block
            sums = epoch.blocks[-1] if whole else read_sums(item, laws=replay.index + 1, arms=len(self.arms))
            tag = epoch.tags[-1] + int(np.searchsorted(self._schedule.edges, replay.start))
            first_tag = item.integer("first_tag", low=tag, high=tag)
            first_round = item.integer("first_round", low=self._phase_start, high=self.rounds)
            self._open.append(OpenReplay(replay, first_tag, first_round, sums))
        if not any(item.replay.index == block for item in self._open):
            raise StateError("state.engine.open lacks the whole block")
        slot = int(self._schedule.edges[self._stretch])
        meant = [replay for replay in self._schedule.replays if replay.start <= slot < replay.stop]
        states.check(sorted(item.replay for item in self._open) == meant, "replays under way")

    def _check_told(self) -> None:
        """Refuse more rewards than rounds, and larger sums than such rewards have."""
        epoch, rows, largest = self._epoch, self._pending.rows(), 1.0 / self._divisor
        most = told_at_most(self.rounds, rows, since=self._phase_start)
        for part in epoch.blocks:
            epoch.check_sums(part, most=most, largest=largest)
        states.check(sum(part.told for part in epoch.blocks) <= most, "number of rewards told")
        slot = int(self._schedule.edges[self._stretch])
        for item in self._open:
            most = told_at_most(self.rounds, rows, since=item.first_round)
            epoch.check_sums(item.sums, most=most, largest=largest)
            asked = (slot - item.replay.start) * self._levels.block_size + self._position
            states.check(asked <= self.rounds - item.first_round, "rounds of a replay")  # masked ones do not count

    def _check_pending(self, rows: npt.NDArray[np.void]) -> None:
        """Refuse open decisions of laws that were not played in their stretch."""
        epoch = self._epoch
        live = rows[rows["tag"] >= epoch.tags[0]]
        tags, laws = live["tag"], live["law"] - epoch.law_base
        blocks = np.searchsorted(epoch.tags, tags, side="right") - 1
        inside = (tags <= self._tag) & (laws >= 0) & (laws <= blocks)
        for item in self._open:
            covered = tags >= item.first_tag
            inside &= (covered == (live["id"] >= item.first_round)) & (~covered | (laws <= item.replay.index))
        states.check(bool(inside.all()), "law or stretch of a pending decision")


def best_design(features: Floats, regulariser: float, costs: Floats | None, candidates: Ints | None) -> Design:
    """What `solve_design` finds; where it stops short, its best law, which is still a valid one."""
    try:
        return solve_design(features, costs=costs, candidates=candidates, regulariser=regulariser)
    except ConvergenceError as error:
        best: Design = error.best
        warnings.warn(f"playing a law with a gap of {best.gap:.2g}: {error}", ConvergenceWarning, stacklevel=3)
        return best
