"""The block engine of OPKB, ADA-OPKB, OPNN and ADA-OPNN: laws from optimisation, replays, tests, restarts.

An epoch runs in blocks j = 0, 1, ... of 2^j E rounds. Block 0 plays the optimal design; block j >= 1 plays a law that
balances the gaps estimated from the epoch so far against exploration. A watching policy replays earlier laws inside a
block, compares what every replay says with what the blocks before said, and starts a new epoch when they disagree.

Two parts are exchangeable: whether changes are watched for (`watches`), and where the features come from (`_source`).

symbol     name               shape
phi^(j)    _source.present    (N, r), for every round of the epoch while block j lasts
pi(X)      design             (N,)
P^(m)      laws[m]            (N,)
S(P^(m))   factors[m]         Cholesky factor, (r, r)
B(k)       block_sums[k]      rewards told of block k: (laws, N) and their number
I          an open Replay     rewards told of a replay that has not ended
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from driftbandits.arms import ArmSet
from driftbandits.design import Design, solve_design
from driftbandits.detection import gap_test, gaps
from driftbandits.errors import ConvergenceError, ConvergenceWarning, InputError, StateError
from driftbandits.estimation import Sums, ips_estimate, law_factor, merge
from driftbandits.linalg import Cholesky
from driftbandits.policies import state as states
from driftbandits.policies.base import Policy
from driftbandits.policies.constants import Constants, Levels, Variant
from driftbandits.policies.features import FeatureSource, FixedFeatures
from driftbandits.policies.pending import Feedback, Row
from driftbandits.schedule import Replay, Schedule, build_schedule, draw_schedule, read_replay
from driftbandits.seeding import generator_from_state, generator_state, stream
from driftbandits.types import Change, Floats, Ints, Verdict

TOLD_SHARE = 0.9  # an interval with a smaller share of its rewards told is not tested


@dataclass
class OpenReplay:
    """A replay under way: its place in the block, when it began, and what it has been told."""

    replay: Replay
    first_tag: int
    first_round: int
    sums: Sums


class BlockPolicy(Policy):
    """Without (`watches = False`) or with change detection; see `OPKB`, `AdaOPKB`, `OPNN` and `AdaOPNN`."""

    needs_horizon = True
    counts_masked = False
    watches: ClassVar[bool] = False

    def __init__(
        self,
        arms: ArmSet,
        *,
        horizon: int | None = None,
        seed: int | None = 0,
        constants: Constants | None = None,
        variant: Variant | None = None,
        reward_range: tuple[float, float] = (-1.0, 1.0),
        out_of_range: Literal["error", "clip"] = "error",
        pending_limit: int = 1_000_000,
    ) -> None:
        super().__init__(
            arms,
            horizon=horizon,
            seed=seed,
            reward_range=reward_range,
            out_of_range=out_of_range,
            pending_limit=pending_limit,
        )
        self.constants = Constants.tuned() if constants is None else constants
        self.variant = Variant.paper() if variant is None else variant
        if not isinstance(self.constants, Constants) or not isinstance(self.variant, Variant):
            raise InputError(
                f"constants must be a Constants and variant a Variant, such as Constants.published() and "
                f"Variant.paper(), got {constants!r} and {variant!r}"
            )
        half = (self.reward_range[1] - self.reward_range[0]) / 2.0
        self._scale = 1.0 if self.constants.scale is None else self.constants.scale / half
        self._coins = stream(self.seed, "schedule")
        self._epoch = -1
        self._law_base = 0
        self._tag = 0
        self._laws: list[Floats] = []
        self._source: FeatureSource

    # --- epochs, blocks, stretches ------------------------------------------------------------------------------

    def _start(self, horizon: int | None) -> None:
        if horizon is None:
            raise StateError("the block engine needs a horizon")
        self._source = self._feature_source()
        self._source.begin()
        regulariser = self.constants.sigma / horizon
        design = self._solve(regulariser)
        gamma = design.log_det - self._source.first.shape[1] * np.log(regulariser)
        self._prepare(
            self.constants.levels(gamma=float(gamma), horizon=horizon, arms=len(self.arms)), design.probabilities
        )
        self._new_epoch()

    def _feature_source(self) -> FeatureSource:
        """Where features come from; a subclass may have others than the arms'."""
        return FixedFeatures(self.arms.features)

    def _prepare(self, levels: Levels, design: Floats) -> None:
        """Keep what stays the same through all epochs of a horizon."""
        self._levels = levels
        self._design = design
        self._design_factor = law_factor(self._source.first, design, levels.regulariser)

    def _factor(self, law: Floats) -> Cholesky:
        return law_factor(self._source.present, law, self._levels.regulariser)

    def _new_epoch(self) -> None:
        self._epoch += 1
        self._law_base += len(self._laws)
        self._source.forget()
        self._laws = []
        self._factors: list[Cholesky] = []
        self._block_sums: list[Sums] = []
        self._block_tags: list[int] = []
        self._references: dict[int, Floats] = {}
        self._finished = False
        self._new_block()

    def _new_block(self) -> None:
        block = len(self._laws)
        law = self._design if block == 0 else self._next_law(block)
        factor = self._design_factor if block == 0 else self._factor(law)
        self._laws.append(law)
        self._factors.append(factor)
        self._block_sums.append(Sums.empty(block + 1, len(self.arms)))
        self._schedule = self._draw_schedule(block)
        self._open: list[OpenReplay] = []
        self._block_tags.append(self._tag + 1)
        self._new_stretch(0)

    def _draw_schedule(self, block: int) -> Schedule:
        if self.watches:
            return draw_schedule(block, self._coins, lowest=self.variant.lowest_index)
        return build_schedule(block, [Replay(start=0, stop=2**block, index=block)])

    def _new_stretch(self, number: int) -> None:
        self._stretch = number
        self._length = self._stretch_length()
        self._position = 0
        self._tag += 1
        for replay in self._schedule.starting(int(self._schedule.edges[number])):
            whole = replay.index == self._schedule.block
            sums = self._block_sums[-1] if whole else Sums.empty(replay.index + 1, len(self.arms))
            self._open.append(OpenReplay(replay, first_tag=self._tag, first_round=self.rounds, sums=sums))

    def _stretch_length(self) -> int:
        start, stop = self._schedule.edges[self._stretch : self._stretch + 2]
        return int(stop - start) * self._levels.block_size

    def _next_law(self, block: int) -> Floats:
        """P^(j): the paper's OP on the gaps of the epoch so far, mixed with the optimal design."""
        levels, share = self._levels, self.variant.share
        design = self._renew_features()
        estimated = gaps(self._ips(merge(self._block_sums)))
        best = self._solve(levels.regulariser, costs=0.5 * levels.beta(block) * estimated).probabilities
        good = np.flatnonzero(estimated <= levels.good_gap(block))
        everyone = len(good) == len(self.arms)
        spread = design if everyone else self._solve(levels.regulariser, candidates=good).probabilities
        mixing = levels.mixing(block)
        law = (1.0 - mixing) * ((1.0 - share) * best + share * spread) + mixing * design
        return np.asarray(law / law.sum())

    def _renew_features(self) -> Floats:
        """Move on to phi^(j), by which all of the epoch is judged from now on; its optimal design over all arms."""
        if not self._source.advance():
            return self._design
        self._factors = [self._factor(law) for law in self._laws]
        self._references = {}
        return self._solve(self._levels.regulariser).probabilities

    def _ips(self, told: Sums) -> Floats:
        return ips_estimate(self._source.present, self._factors, told)

    def _solve(self, regulariser: float, *, costs: Floats | None = None, candidates: Ints | None = None) -> Design:
        """The law that `solve_design` finds; where it stops short, its best one, which is still a valid law."""
        try:
            return solve_design(self._source.present, costs=costs, candidates=candidates, regulariser=regulariser)
        except ConvergenceError as error:
            best: Design = error.best
            warnings.warn(f"playing a law with a gap of {best.gap:.2g}: {error}", ConvergenceWarning, stacklevel=2)
            return best

    # --- the hooks of Policy ------------------------------------------------------------------------------------

    def _index(self) -> int:
        """m_t: the law followed in the present stretch."""
        return int(self._schedule.indices[self._stretch])

    def _law(self) -> Floats:
        return self._laws[self._index()]

    def _stamp(self) -> tuple[int, int]:
        return self._law_base + self._index(), self._tag

    def _steady(self) -> int:
        return max(self._length - self._position, 1)

    def _advance(self, count: int) -> None:
        self._position += count

    def _due(self) -> bool:
        return not self._finished and self._position == self._length

    def _turn(self) -> None:
        """The stretch is over: test what ended with it, then restart, open the next block or the next stretch."""
        slot = int(self._schedule.edges[self._stretch + 1])
        ended = [item for item in self._open if item.replay.stop == slot]
        change = self._test(ended) if self.watches else None
        if change is not None:
            self._record(change)
        if self._phase_left() == 0:
            self._finished = True
        elif change is not None:
            self._new_epoch()
        elif self._stretch + 1 == len(self._schedule):
            self._new_block()
        else:
            self._open = [item for item in self._open if item.replay.stop != slot]
            self._new_stretch(self._stretch + 1)

    def _learn(self, feedback: Feedback) -> None:
        """Add rewards to the block they were asked in and to every open replay that covers their round."""
        late = (feedback.tags >= 0) & (feedback.tags < self._block_tags[0])  # an epoch already closed
        self.late += int(np.count_nonzero(late))
        live = feedback.tags >= self._block_tags[0]  # tag -1: a mask had removed mass
        tags, arms = feedback.tags[live], feedback.arms[live]
        laws, rewards = feedback.laws[live] - self._law_base, feedback.rewards[live] / self._scale
        self._source.observe(arms, rewards)
        blocks = np.searchsorted(self._block_tags, tags, side="right") - 1
        last = len(self._block_sums) - 1
        for item in self._open:  # the present block itself is one of them
            covered = tags >= item.first_tag
            item.sums.add(laws[covered], arms[covered], rewards[covered])
        for block in np.unique(blocks[blocks < last]):
            there = blocks == block
            self._block_sums[block].add(laws[there], arms[there], rewards[there])
            self._references = {k: known for k, known in self._references.items() if k < block}

    def _learn_one(self, row: Row, reward: float) -> None:
        if row.tag < self._block_tags[-1]:  # an earlier block, a closed epoch or a masked round
            super()._learn_one(row, reward)
            return
        law, value = row.law - self._law_base, reward / self._scale
        self._source.observe_one(row.arm, value)
        for item in self._open:
            if row.tag >= item.first_tag:
                item.sums.sums[law, row.arm] += value
                item.sums.told += 1

    def _estimate(self) -> Floats:
        return self._ips(merge(self._block_sums)) * self._scale

    # --- the change test ----------------------------------------------------------------------------------------

    def _reference(self, block: int) -> Floats | None:
        """Estimate from blocks 0..k of the epoch, None if nothing of them was told."""
        if block not in self._references:
            told = merge(self._block_sums[: block + 1])
            if told.told == 0:
                return None
            self._references[block] = self._ips(told)
        return self._references[block]

    def _test(self, ended: list[OpenReplay]) -> Change | None:
        """The clearest disagreement between a replay that just ended and the blocks before, if any."""
        block = self._schedule.block
        found: Change | None = None
        strongest = 0.0
        for item in ended:
            length = (item.replay.stop - item.replay.start) * self._levels.block_size
            whole = item.replay.index == block
            if (whole and not self.variant.test_block) or item.sums.told < TOLD_SHARE * length:
                continue
            recent = self._ips(item.sums)
            for compared in range(self.variant.lowest_index, block):
                reference = self._reference(compared)
                if reference is None:
                    continue
                threshold = self.variant.test_threshold(self._levels, item.replay.index, compared)
                verdict = gap_test(recent, reference, threshold)
                if verdict.changed and verdict.excess > strongest:
                    strongest = verdict.excess
                    found = self._describe(verdict, item, compared, reference, recent)
        return found

    def _describe(self, verdict: Verdict, item: OpenReplay, compared: int, reference: Floats, recent: Floats) -> Change:
        arms = list(verdict.arms)
        scale = self._scale
        return Change(
            round=self.rounds,
            epoch=self._epoch,
            block=self._schedule.block,
            interval=(item.first_round, self.rounds),
            compared_with=compared,
            statistic=verdict.statistic * scale,
            threshold=verdict.threshold * scale,
            arms=verdict.arms,
            before=tuple(self._outward(reference[arms] * scale).tolist()),
            after=tuple(self._outward(recent[arms] * scale).tolist()),
            names=() if self.arms.names is None else tuple(self.arms.names[arm] for arm in arms),
        )

    # --- state --------------------------------------------------------------------------------------------------

    def _settings(self) -> dict[str, Any]:
        return {"constants": dataclasses.asdict(self.constants), "variant": dataclasses.asdict(self.variant)}

    def _shown(self) -> dict[str, Any]:
        return {"constants": self.constants, "variant": self.variant}

    @classmethod
    def _read_settings(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        return {"constants": Constants(**settings["constants"]), "variant": Variant(**settings["variant"])}

    def _export(self) -> dict[str, Any]:
        return {
            "levels": dataclasses.asdict(self._levels),
            "source": self._source.export(),
            "design": self._design.copy(),
            "coins": generator_state(self._coins),
            "epoch": self._epoch,
            "law_base": self._law_base,
            "tag": self._tag,
            "finished": self._finished,
            "stretch": self._stretch,
            "position": self._position,
            "laws": np.array(self._laws),
            "block_tags": np.array(self._block_tags),
            "blocks": [{"sums": part.sums.copy(), "told": part.told} for part in self._block_sums],
            "replays": np.array([dataclasses.astuple(replay) for replay in self._schedule.replays]),
            "open": [
                {
                    "replay": list(dataclasses.astuple(item.replay)),
                    "first_tag": item.first_tag,
                    "first_round": item.first_round,
                    "sums": item.sums.sums.copy(),
                    "told": item.sums.told,
                }
                for item in self._open
            ],
        }

    def _import(self, state: states.Reader) -> None:
        size = len(self.arms)
        levels = state.reader("levels")
        kinds = {field.name: levels.number(field.name) for field in dataclasses.fields(Levels)}
        resolved = Levels(**{**kinds, "block_size": levels.integer("block_size", low=1)})  # type: ignore[arg-type]
        laws = state.array("laws", np.float64, (None, size))
        if not len(laws) or (laws < 0).any() or (np.abs(laws.sum(axis=1) - 1.0) > 1e-9).any():
            raise StateError("state.engine.laws are not probability vectors")
        self._source = self._feature_source()
        self._source.load(state.reader("source"))
        self._prepare(resolved, state.law("design", size))
        self._coins = generator_from_state(state.raw("coins"))
        self._epoch = state.integer("epoch")
        self._law_base = state.integer("law_base")
        self._tag = state.integer("tag", low=1)
        self._finished = state.flag("finished")
        self._laws = list(laws)
        self._factors = [self._factor(law) for law in self._laws]
        self._references = {}
        self._import_blocks(state)
        self._import_schedule(state)

    def _import_blocks(self, state: states.Reader) -> None:
        self._block_sums = [
            _read_sums(item, laws=number + 1, arms=len(self.arms))
            for number, item in enumerate(state.readers("blocks"))
        ]
        self._block_tags = [int(tag) for tag in state.array("block_tags", np.int64, (len(self._laws),))]
        if len(self._block_sums) != len(self._laws):
            raise StateError(f"state.engine has {len(self._block_sums)} blocks for {len(self._laws)} laws")
        if any(a >= b for a, b in zip(self._block_tags, [*self._block_tags[1:], self._tag + 1], strict=True)):
            raise StateError("state.engine.block_tags do not increase")

    def _import_schedule(self, state: states.Reader) -> None:
        block = len(self._laws) - 1
        replays = [read_replay(row.tolist(), block) for row in state.array("replays", np.int64, (None, 3))]
        if Replay(start=0, stop=2**block, index=block) not in replays:
            raise StateError("state.engine.replays lacks the whole block")
        self._schedule = build_schedule(block, replays)
        self._stretch = state.integer("stretch", high=len(self._schedule) - 1)
        self._length = self._stretch_length()
        self._position = state.integer("position", high=self._length)
        self._open = []
        for item in state.readers("open"):
            replay = read_replay(item.raw("replay"), block)
            whole = replay.index == block
            sums = self._block_sums[-1] if whole else _read_sums(item, laws=replay.index + 1, arms=len(self.arms))
            first_tag = item.integer("first_tag", low=self._block_tags[-1], high=self._tag)
            self._open.append(OpenReplay(replay, first_tag, item.integer("first_round", high=self.rounds), sums))
        if not any(item.replay.index == block for item in self._open):
            raise StateError("state.engine.open lacks the whole block")


def _read_sums(reader: states.Reader, *, laws: int, arms: int) -> Sums:
    return Sums(sums=reader.array("sums", np.float64, (laws, arms)), told=reader.integer("told"))
