"""The block engine of the OPKB family: laws from optimisation, replays, change detection, restarts.

The log of another policy as a first evaluation: what a block policy takes from it, and what not.

The estimators of the family weigh rewards by the law that drew them, and those of a log were drawn by another, which
may have changed from row to row. With the share that each arm has in the rows in the place of a law, the
inverse-propensity estimate is the ridge regression on the log, no matter how the arms were chosen. So the log takes the
place of block 0, which would have played the optimal design, and block 1 begins with the gaps estimated from it.
Nothing is tested on it: a detector sees what the policy plays itself.

An epoch runs in blocks j = 0, 1, ... of 2^j E rounds. Block 0 plays the optimal design; block j >= 1 plays a law that
balances the gaps estimated from the epoch so far against exploration. A policy with a detector replays earlier laws
inside a block, and starts a new epoch when its detector finds that something has changed. What differs between the
policies of the family are the parts they hand to the engine, see `parts`.

symbol     name                 shape
phi^(j)    _features.present    (N, r), for every round of the epoch while block j lasts
P^(m)      _epoch.laws[m]       (N,)
I          an open Replay       rewards told of a replay that has not ended
"""

from __future__ import annotations

import dataclasses
from typing import Any, Self, Unpack

import numpy as np
import numpy.typing as npt

from driftbandits import state as states
from driftbandits._util.seeding import generator_from_state, generator_state, same_stream, stream
from driftbandits.arms.arm_set import ArmSet
from driftbandits.design.blocks import Replay, Schedule, Sums, build_schedule, draw_schedule, read_replay
from driftbandits.detection import Finding
from driftbandits.detection.gaps import gaps
from driftbandits.errors import InputError, StateError
from driftbandits.policies.algorithm import freeze
from driftbandits.policies.arm_migration import ArmsChange
from driftbandits.policies.base import Policy
from driftbandits.policies.decisions import Feedback, Row
from driftbandits.policies.inputs import CommonSettings
from driftbandits.policies.opkb.parts import (
    UNDER_WAY,
    BlockLevels,
    Epoch,
    OpenReplay,
    Parts,
    export_sums,
    point_law,
    read_sums,
)
from driftbandits.state.reader import FARTHEST, told_at_most
from driftbandits.types import Bools, Decisions, Floats, Ints


def _export_open(item: OpenReplay) -> dict[str, Any]:
    return {
        "replay": list(dataclasses.astuple(item.replay)),
        "first_tag": item.first_tag,
        "first_round": item.first_round,
        **export_sums(item.sums),
    }


class BlockPolicy(Policy):
    """Epochs, blocks, stretches, played with the parts handed in.

    `divisor`: what rewards on [-1, 1] are divided by before they are estimated from and tested.
    """

    counts_masked = False
    _needs_own_law = True

    def __init__(self, arms: ArmSet, parts: Parts, divisor: float = 1.0, **common: Unpack[CommonSettings]) -> None:
        super().__init__(arms, **common)
        if arms.crossing is not None:
            raise InputError(
                f"{type(self).__name__} learns nothing in rounds with a mask, and arms crossed with segments are asked "
                f"for with one in every round; take AutoBandit or GPUCB, or one policy per segment"
            )
        self._features = parts.features
        self._constants = parts.constants
        self._estimator = parts.estimator
        self._detector = parts.detector
        self._probes = parts.probes
        self._divisor = divisor
        self._coins = stream(self.seed, "schedule")
        self._tag = 0
        self._epoch = Epoch(-1, 0)

    # --- epochs, blocks, stretches ------------------------------------------------------------------------------

    def _start(self, horizon: int | None) -> None:
        self._features.begin()
        self._constants.begin(horizon)
        self._new_epoch()

    def _new_epoch(self, since: int | None = None) -> None:
        """Start anew; rounds from `since` on are known to belong to the new epoch already."""
        old = self._epoch
        self._features.forget(since)
        self._epoch = Epoch(old.number + 1, old.law_base + len(old.laws))
        self._finished = False
        self._ended: list[OpenReplay] = []  # over, but not all of their rewards are there: order="asked"
        if self._detector is not None:
            self._detector.begin()
        self._new_block()

    def _new_block(self) -> None:
        epoch, block = self._epoch, len(self._epoch.laws)
        moved = self._features.advance()
        self._levels: BlockLevels = self._constants.open(epoch)
        if moved or block == 0 or epoch.regulariser != self._levels.regulariser:
            epoch.view(self._features.present, self._levels.regulariser)
        epoch.add(self._next_law(block, moved), self._estimator.baseline(), self._tag + 1)
        if self._detector is not None:
            self._detector.open(epoch, self.rounds)
        if self._probes is not None:
            self._probes.open(self.rounds, self._levels.block_size * 2**block)
        self._schedule = self._draw_schedule(block)
        self._open: list[OpenReplay] = []
        self._new_stretch(0)

    def _draw_schedule(self, block: int) -> Schedule:
        if self._detector is None:
            return build_schedule(block, [Replay(start=0, stop=2**block, index=block)])
        scale = self._constants.replay_scale(self._epoch)
        return draw_schedule(block, self._coins, lowest=self._constants.lowest_index, scale=scale)

    def _new_stretch(self, number: int) -> None:
        self._stretch = number
        self._length = self._stretch_length()
        self._position = 0
        self._tag += 1
        for replay in self._schedule.starting(int(self._schedule.edges[number])):
            whole = replay.index == self._schedule.block
            sums = self._epoch.blocks[-1] if whole else Sums.empty(replay.index + 1, len(self.arms))
            block = self._schedule.block
            self._open.append(OpenReplay(replay, block, first_tag=self._tag, first_round=self.rounds, sums=sums))

    def _stretch_length(self) -> int:
        start, stop = self._schedule.edges[self._stretch : self._stretch + 2]
        return int(stop - start) * self._levels.block_size

    def _next_law(self, block: int, moved: bool) -> Floats:
        """P^(j): the paper's OP on the gaps of the epoch so far, mixed with the optimal design."""
        epoch, constants, levels = self._epoch, self._constants, self._levels
        design = constants.optimal_design(epoch, moved=moved)
        if block == 0 and not constants.knows_enough():
            return design
        estimated = gaps(self._estimator.rewards(epoch))
        best = constants.solve(epoch, costs=0.5 * levels.beta(block) * estimated).probabilities
        good = np.flatnonzero(estimated <= constants.good_gap(block, design))
        everyone = len(good) == len(self.arms)
        spread = design if everyone else constants.solve(epoch, candidates=good).probabilities
        answer = (1.0 - constants.share) * best + constants.share * spread
        mixing = constants.mixing(block, answer, design, estimated)
        law = (1.0 - mixing) * answer + mixing * design
        return np.asarray(law / law.sum())

    # --- the hooks of Policy: asking ----------------------------------------------------------------------------

    def _index(self) -> int:
        """m_t: the law followed in the present stretch."""
        return int(self._schedule.indices[self._stretch])

    def _probed_arm(self) -> int | None:
        """The arm that is played out of turn now."""
        return None if self._probes is None else self._probes.arm

    def _law(self) -> Floats:
        arm = self._probed_arm()
        return self._epoch.laws[self._index()] if arm is None else point_law(arm, len(self.arms))

    def _stamp(self) -> tuple[int, int]:
        """Laws have their numbers; the law that plays arm x alone has -1 - x."""
        arm = self._probed_arm()
        return (self._epoch.law_base + self._index() if arm is None else -1 - arm), self._tag

    def _steady(self) -> int:
        if self._probes is not None and self._probes.arm is not None:
            return self._probes.left
        return max(self._length - self._position, 1)

    def _steady_rounds(self) -> int:
        self._begin_once()
        prompt = self._detector is not None and self._detector.prompt
        return 1 if prompt or self._ended else super()._steady_rounds()

    def _advance(self, count: int) -> None:
        if self._probes is not None and self._probes.arm is not None:
            self._probes.ask(count)
        else:
            self._position += count

    def _draw(self, wanted: int, mask: Bools | None) -> Decisions:
        if self._probes is not None and mask is not None:
            self._move()  # which may end a probe, or begin a block
            self._probes.allow(mask)
        return super()._draw(wanted, mask)

    # --- moving on ----------------------------------------------------------------------------------------------

    def _block_is_called_for(self) -> bool:
        return self._probes is not None and self._probes.calls_for_a_block

    def _has_fired(self) -> bool:
        return self._detector is not None and self._detector.fired

    def _due(self) -> bool:
        if self._finished:
            return False
        over = self._position == self._length
        return over or self._has_fired() or self._block_is_called_for() or bool(self._ripe())

    def _ripe(self) -> list[OpenReplay]:
        """Replays that are over and can be tested: all of their rewards have come, or will not."""
        if not self._ended:
            return []
        first_open = self._first_open()
        return [item for item in self._ended if item.stop_round <= first_open]

    def _turn(self) -> None:
        """A stretch is over, a change was found, a test has all its rewards or a probe has ended.

        Then restart, or open a block or a stretch, or go on.
        """
        if self._block_is_called_for() and not self._has_fired() and self._phase_left() > 0:
            self._new_block()
            return
        over = self._position == self._length
        tested = self._end_replays() if over else []
        found = None if self._detector is None else self._detector.verdict(self._epoch, tested + self._pick_ripe())
        if found is not None:
            self._report(found)
        if self._phase_left() == 0:
            self._finished, self._ended = True, []
        elif found is not None:
            self._new_epoch(found.first_round)
        elif not over:
            return
        elif self._stretch + 1 == len(self._schedule):
            with self._still_whole():  # a training takes seconds, and may fail
                self._features.prepare()
            self._new_block()
        else:
            self._open = [item for item in self._open if item.stop_round == UNDER_WAY]
            self._new_stretch(self._stretch + 1)

    def _end_replays(self) -> list[OpenReplay]:
        """End the replays that end with the stretch; those to be tested now, whatever is told of them.

        In the order asked, tests wait for rewards that are still to come.
        """
        slot = int(self._schedule.edges[self._stretch + 1])
        ended = [item for item in self._open if item.replay.stop == slot]
        for item in ended:
            item.end(self._tag, self.rounds)
        if self.order == "told" or self._detector is None:
            return ended
        self._ended += ended
        return []

    def _pick_ripe(self) -> list[OpenReplay]:
        ripe = self._ripe()
        self._ended = [item for item in self._ended if item not in ripe]
        return ripe

    def _report(self, found: Finding) -> None:
        verdict, divisor = found.verdict, self._divisor
        unit = divisor if found.in_rewards else 1.0
        self._report_change(
            epoch=self._epoch.number,
            block=self._schedule.block,
            interval=(found.first_round, self.rounds if found.stop_round is None else found.stop_round),
            compared_with=found.compared_with,
            statistic=verdict.statistic * unit,
            threshold=verdict.threshold * unit,
            arms=verdict.arms,
            before=found.before * divisor,
            after=found.after * divisor,
            stream=found.stream,
        )

    # --- the hooks of Policy: learning --------------------------------------------------------------------------

    def _learn(self, feedback: Feedback) -> None:
        if self._probes is None:
            self._add_many(feedback)
        else:
            for row, reward in feedback.rows():
                self._learn_one(row, reward)

    def _lose(self, rows: npt.NDArray[np.void]) -> None:
        if self._probes is not None:
            self._probes.lose(rows["arm"][rows["law"] < 0])

    def _learn_one(self, row: Row, reward: float) -> None:
        """`_add_many` for one reward, in plain numbers where it is one of the present block."""
        epoch = self._epoch
        if row.law < 0:
            self._add_apart(row, reward)
            return
        if row.tag < epoch.tags[-1]:  # an earlier block, a closed epoch or a masked round
            self._add_many(Feedback.single(row, reward))
            return
        law, arm, scaled = row.law - epoch.law_base, row.arm, reward / self._divisor
        self._features.observe_one(arm, scaled, row.id)
        baseline = epoch.baselines[law]
        value = scaled if baseline is None else scaled - float(baseline[arm])
        for item in self._open:
            if row.tag >= item.first_tag:
                item.sums.sums[law, arm] += value
                item.sums.counts[law] += 1
        for item in self._ended:
            if not item.whole and item.first_tag <= row.tag <= item.last_tag:
                item.sums.sums[law, arm] += value
                item.sums.counts[law] += 1
        if self._detector is not None and self._detector.prompt:
            self._detector.see(law, arm, scaled, value, row.id)
        if self._probes is not None and len(epoch.laws) > 1:
            self._probes.surprise(arm, scaled, row.id, self._expected())

    def _add_many(self, feedback: Feedback) -> None:
        """Add rewards to the block they were asked in and to every open replay that covers their round."""
        epoch = self._epoch
        late = (feedback.tags >= 0) & (feedback.tags < epoch.tags[0])  # an epoch already closed
        self.late += int(np.count_nonzero(late))
        live = feedback.tags >= epoch.tags[0]  # tag -1: a mask had removed mass
        tags, arms, rounds = feedback.tags[live], feedback.arms[live], feedback.ids[live]
        laws, rewards = feedback.laws[live] - epoch.law_base, feedback.rewards[live] / self._divisor
        self._features.observe(arms, rewards, rounds)
        values = self._less_baseline(laws, arms, rewards)
        blocks = np.searchsorted(epoch.tags, tags, side="right") - 1
        last = len(epoch.blocks) - 1
        for item in self._open:  # the present block itself is one of them
            covered = tags >= item.first_tag
            item.sums.add(laws[covered], arms[covered], values[covered])
        for item in self._ended:
            covered = item.covers(tags)
            if not item.whole:  # else it has the sums of its block, below
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

    def _add_apart(self, row: Row, reward: float) -> None:
        """A reward of a probe: no law has drawn it."""
        if row.tag < self._epoch.tags[0]:  # a closed epoch, or a masked round
            self.late += row.tag >= 0
            return
        scaled = reward / self._divisor
        self._features.observe_one(row.arm, scaled, row.id)
        if self._detector is not None and self._detector.prompt:
            self._detector.see_apart(row.arm, scaled, row.id)
        if self._probes is not None:
            self._probes.tell(row.arm, scaled, self._expected())

    def _evaluate(self, rounds: int, arms: Ints, rewards: Floats, ids: Ints) -> bool:
        """Start after a log of `rounds` rounds; these arms and internal rewards are known, of the rounds `ids`.

        Where the horizon is unknown and needed, the policy starts anew at doubling horizons: what came before the last
        of these starts is left out, as it would be forgotten.
        """
        self._begin_once()
        while self.horizon is None and self.needs_horizon and self._phase_start + self._phase_length <= rounds:
            self.rounds = self._phase_start + self._phase_length
            self._begin(2 * self._phase_length)
        self._guard.changing = True
        self.rounds = rounds
        known = ids >= self._phase_start
        if known.any():
            self._fill_first_block(arms[known], rewards[known] / self._divisor, ids[known])
            self._new_block()
        self._guard.changing = False
        return True

    def _fill_first_block(self, arms: Ints, rewards: Floats, ids: Ints) -> None:
        """Let block 0 have played the log."""
        epoch, size = self._epoch, len(self.arms)
        self._features.observe(arms, rewards, ids)
        baseline = epoch.baselines[0]
        values = rewards if baseline is None else rewards - baseline[arms]
        epoch.laws[0] = freeze(np.bincount(arms, minlength=size) / len(arms))
        block = epoch.blocks[0]
        block.sums[0] = np.bincount(arms, weights=values, minlength=size)
        block.counts[0] = len(arms)
        epoch.view(self._features.present, self._levels.regulariser)  # what followed from the design no longer holds

    def _expected(self) -> Floats:
        """What the present block expects of every arm."""
        baseline = self._epoch.baselines[-1]
        return np.zeros(len(self.arms)) if baseline is None else baseline

    def _estimate(self) -> Floats:
        return self._estimator.rewards(self._epoch) * self._divisor

    # --- state --------------------------------------------------------------------------------------------------

    def _carry(self, old: Self, change: ArmsChange) -> None:
        """A new epoch, for laws and designs are those of the old arms; epochs, laws and stretches are counted on."""
        self._epoch, self._tag, self._coins = old._epoch, old._tag, same_stream(old._coins)
        self._start_with_arms(change, epoch=old._epoch.number)

    def _export(self) -> dict[str, Any]:
        """The parts, the epoch and the block under way."""
        return {
            "constants": self._constants.export(),
            "features": self._features.export(),
            "detector": {} if self._detector is None else self._detector.export(),
            "looks": {} if self._probes is None else self._probes.export(),
            "epoch": self._epoch.export(),
            "coins": generator_state(self._coins),
            "tag": self._tag,
            "finished": self._finished,
            "stretch": self._stretch,
            "position": self._position,
            "replays": np.array([dataclasses.astuple(replay) for replay in self._schedule.replays]),
            "open": [_export_open(item) for item in self._open],
            "ended": [
                {**_export_open(item), "block": item.block, "last_tag": item.last_tag, "stop_round": item.stop_round}
                for item in self._ended
            ],
        }

    def _import(self, state: states.Reader) -> None:
        """Inverse of `export`, checking every value."""
        self._features.load(state.reader("features"), rounds=self.rounds)
        self._levels = self._constants.load(state.reader("constants"), horizon=self._phase_length)
        self._coins = generator_from_state(state.raw("coins"))
        self._tag = state.integer("tag", low=1, high=FARTHEST)
        self._finished = state.flag("finished")
        states.check(not self._finished or self._phase_left() == 0, "end of the last block")
        epoch = Epoch.load(state.reader("epoch"), arms=len(self.arms), last_tag=self._tag)
        subtracts = self._estimator.subtracts
        states.check(all((baseline is not None) == subtracts for baseline in epoch.baselines), "baselines")
        epoch.view(self._features.present, self._levels.regulariser)
        self._epoch = epoch
        self._constants.check(epoch)
        self._load_schedule(state)
        self._check_told()
        self._check_awaited(self._awaited())
        self._load_watch(state)

    def _load_schedule(self, state: states.Reader) -> None:
        epoch, block = self._epoch, len(self._epoch.laws) - 1
        replays = [read_replay(row.tolist(), block) for row in state.array("replays", np.int64, (None, 3))]
        if Replay(start=0, stop=2**block, index=block) not in replays:
            raise StateError("state.engine.replays lacks the whole block")
        states.check(len(set(replays)) == len(replays), "replays, of which one is there twice,")
        self._schedule = build_schedule(block, replays)
        self._stretch = state.integer("stretch", high=len(self._schedule) - 1)
        states.check(self._tag == epoch.tags[-1] + self._stretch, "tag")  # one per stretch
        self._length = self._stretch_length()
        self._position = state.integer("position", high=self._length)
        self._open = [self._read_open(item) for item in state.readers("open")]
        if not any(item.replay.index == block for item in self._open):
            raise StateError("state.engine.open lacks the whole block")
        slot = int(self._schedule.edges[self._stretch])
        meant = [replay for replay in self._schedule.replays if replay.start <= slot < replay.stop]
        states.check(sorted(item.replay for item in self._open) == meant, "replays under way")
        self._ended = [self._read_ended(item) for item in state.readers("ended")]
        waits = self.order == "asked" and self._detector is not None
        states.check(waits or not self._ended, "replays that wait to be tested")

    def _read_open(self, item: states.Reader) -> OpenReplay:
        epoch, block = self._epoch, self._schedule.block
        replay = read_replay(item.raw("replay"), block)
        whole = replay.index == block
        sums = epoch.blocks[-1] if whole else read_sums(item, laws=replay.index + 1, arms=len(self.arms))
        tag = epoch.tags[-1] + int(np.searchsorted(self._schedule.edges, replay.start))
        first_tag = item.integer("first_tag", low=tag, high=tag)
        first_round = item.integer("first_round", low=self._phase_start, high=self.rounds)
        return OpenReplay(replay, block, first_tag, first_round, sums)

    def _read_ended(self, item: states.Reader) -> OpenReplay:
        """A replay that is over and waits for rewards; it may be one of an earlier block."""
        epoch = self._epoch
        block = item.integer("block", high=len(epoch.laws) - 1)
        replay = read_replay(item.raw("replay"), block)
        whole = replay.index == block
        sums = epoch.blocks[block] if whole else read_sums(item, laws=replay.index + 1, arms=len(self.arms))
        first_tag = item.integer("first_tag", low=epoch.tags[block])
        last_tag = item.integer("last_tag", low=first_tag, high=self._tag)
        states.check(block + 1 == len(epoch.tags) or last_tag < epoch.tags[block + 1], "last tag of a replay")
        first_round = item.integer("first_round", low=self._phase_start, high=self.rounds)
        stop_round = item.integer("stop_round", low=first_round, high=self.rounds)
        return OpenReplay(replay, block, first_tag, first_round, sums, last_tag, stop_round)

    def _check_told(self) -> None:
        """Refuse more rewards than rounds, and larger sums than such rewards have."""
        epoch, rows, largest = self._epoch, self._pending.rows(), 1.0 / self._divisor
        most = told_at_most(self.rounds, rows, since=self._phase_start)
        for part in epoch.blocks:
            epoch.check_sums(part, most=most, largest=largest)
        told = sum(part.told for part in epoch.blocks)
        states.check(told <= most, "number of rewards told")
        self._features.check(told=told, probed=self._probes is not None, largest=largest)
        for item in self._ended:
            epoch.check_sums(item.sums, most=item.stop_round - item.first_round, largest=largest)
        slot = int(self._schedule.edges[self._stretch])
        for item in self._open:
            most = told_at_most(self.rounds, rows, since=item.first_round)
            epoch.check_sums(item.sums, most=most, largest=largest)
            asked = (slot - item.replay.start) * self._levels.block_size + self._position
            states.check(asked <= self.rounds - item.first_round, "rounds of a replay")  # masked ones do not count

    def _check_awaited(self, rows: npt.NDArray[np.void]) -> None:
        """Refuse open decisions of laws that were not played in their stretch; that of a probe is -1 - arm."""
        probes, drawn = rows[rows["law"] < 0], rows[rows["law"] >= 0]
        states.check(self._probes is not None or not len(probes), "law of a pending decision")
        epoch = self._epoch
        recent = probes[probes["tag"] >= epoch.tags[0]]  # those of an earlier epoch may have other numbers of arms
        states.check(bool((recent["law"] == -1 - recent["arm"]).all()), "arm of a pending probe")
        live = drawn[drawn["tag"] >= epoch.tags[0]]
        tags, laws = live["tag"], live["law"] - epoch.law_base
        blocks = np.searchsorted(epoch.tags, tags, side="right") - 1
        inside = (tags <= self._tag) & (laws >= 0) & (laws <= blocks)
        for item in self._open:
            covered = tags >= item.first_tag
            inside &= (covered == (live["id"] >= item.first_round)) & (~covered | (laws <= item.replay.index))
        for item in self._ended:
            inside &= ~item.covers(tags) | ((laws <= item.replay.index) & (live["id"] < item.stop_round))
        states.check(bool(inside.all()), "law or stretch of a pending decision")

    def _load_watch(self, state: states.Reader) -> None:
        """The detector and the probes, which may be compared with all the rest."""
        watched, probed = state.reader("detector"), state.reader("looks")
        if self._detector is not None:
            self._detector.load(watched, self._epoch, self._open, rounds=self.rounds)
        if self._probes is not None:
            first_round = next(item.first_round for item in self._open if item.replay.index == self._schedule.block)
            self._probes.open(first_round, self._levels.block_size * 2**self._schedule.block)
            self._probes.load(probed, arms=len(self.arms))
