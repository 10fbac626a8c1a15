"""The block engine as a saved state, and back. Part of `BlockPolicy`, whose private books it reads and writes."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from driftbandits import state as states
from driftbandits.errors import StateError
from driftbandits.policies.blocks.epoch import Epoch, OpenReplay, export_sums, read_sums
from driftbandits.schedule import Replay, build_schedule, read_replay
from driftbandits.seeding import generator_from_state, generator_state
from driftbandits.state.plausible import FARTHEST, told_at_most

if TYPE_CHECKING:
    from driftbandits.policies.blocks.engine import BlockPolicy


def export(policy: BlockPolicy) -> dict[str, Any]:
    """The parts, the epoch and the block under way."""
    return {
        "constants": policy._constants.export(),
        "features": policy._features.export(),
        "detector": {} if policy._detector is None else policy._detector.export(),
        "looks": {} if policy._looks is None else policy._looks.export(),
        "epoch": policy._epoch.export(),
        "coins": generator_state(policy._coins),
        "tag": policy._tag,
        "finished": policy._finished,
        "stretch": policy._stretch,
        "position": policy._position,
        "replays": np.array([dataclasses.astuple(replay) for replay in policy._schedule.replays]),
        "open": [_export_open(item) for item in policy._open],
        "ended": [
            {**_export_open(item), "block": item.block, "last_tag": item.last_tag, "stop_round": item.stop_round}
            for item in policy._ended
        ],
    }


def _export_open(item: OpenReplay) -> dict[str, Any]:
    return {
        "replay": list(dataclasses.astuple(item.replay)),
        "first_tag": item.first_tag,
        "first_round": item.first_round,
        **export_sums(item.sums),
    }


def load(policy: BlockPolicy, state: states.Reader) -> None:
    """Inverse of `export`, checking every value."""
    policy._features.load(state.reader("features"), rounds=policy.rounds)
    policy._levels = policy._constants.load(state.reader("constants"), horizon=policy._phase_length)
    policy._coins = generator_from_state(state.raw("coins"))
    policy._tag = state.integer("tag", low=1, high=FARTHEST)
    policy._finished = state.flag("finished")
    states.check(not policy._finished or policy._phase_left() == 0, "end of the last block")
    epoch = Epoch.load(state.reader("epoch"), arms=len(policy.arms), last_tag=policy._tag)
    subtracts = policy._estimator.subtracts
    states.check(all((baseline is not None) == subtracts for baseline in epoch.baselines), "baselines")
    epoch.view(policy._features.present, policy._levels.regulariser)
    policy._epoch = epoch
    policy._constants.check(epoch)
    _load_schedule(policy, state)
    _check_told(policy)
    _check_pending(policy, policy._awaited())
    _load_watch(policy, state)


def _load_schedule(policy: BlockPolicy, state: states.Reader) -> None:
    epoch, block = policy._epoch, len(policy._epoch.laws) - 1
    replays = [read_replay(row.tolist(), block) for row in state.array("replays", np.int64, (None, 3))]
    if Replay(start=0, stop=2**block, index=block) not in replays:
        raise StateError("state.engine.replays lacks the whole block")
    states.check(len(set(replays)) == len(replays), "replays, of which one is there twice,")
    policy._schedule = build_schedule(block, replays)
    policy._stretch = state.integer("stretch", high=len(policy._schedule) - 1)
    states.check(policy._tag == epoch.tags[-1] + policy._stretch, "tag")  # one per stretch
    policy._length = policy._stretch_length()
    policy._position = state.integer("position", high=policy._length)
    policy._open = [_read_open(policy, item) for item in state.readers("open")]
    if not any(item.replay.index == block for item in policy._open):
        raise StateError("state.engine.open lacks the whole block")
    slot = int(policy._schedule.edges[policy._stretch])
    meant = [replay for replay in policy._schedule.replays if replay.start <= slot < replay.stop]
    states.check(sorted(item.replay for item in policy._open) == meant, "replays under way")
    policy._ended = [_read_ended(policy, item) for item in state.readers("ended")]
    waits = policy.order == "asked" and policy._detector is not None
    states.check(waits or not policy._ended, "replays that wait to be tested")


def _read_open(policy: BlockPolicy, item: states.Reader) -> OpenReplay:
    epoch, block = policy._epoch, policy._schedule.block
    replay = read_replay(item.raw("replay"), block)
    whole = replay.index == block
    sums = epoch.blocks[-1] if whole else read_sums(item, laws=replay.index + 1, arms=len(policy.arms))
    tag = epoch.tags[-1] + int(np.searchsorted(policy._schedule.edges, replay.start))
    first_tag = item.integer("first_tag", low=tag, high=tag)
    first_round = item.integer("first_round", low=policy._phase_start, high=policy.rounds)
    return OpenReplay(replay, block, first_tag, first_round, sums)


def _read_ended(policy: BlockPolicy, item: states.Reader) -> OpenReplay:
    """A replay that is over and waits for rewards; it may be one of an earlier block."""
    epoch = policy._epoch
    block = item.integer("block", high=len(epoch.laws) - 1)
    replay = read_replay(item.raw("replay"), block)
    whole = replay.index == block
    sums = epoch.blocks[block] if whole else read_sums(item, laws=replay.index + 1, arms=len(policy.arms))
    first_tag = item.integer("first_tag", low=epoch.tags[block])
    last_tag = item.integer("last_tag", low=first_tag, high=policy._tag)
    states.check(block + 1 == len(epoch.tags) or last_tag < epoch.tags[block + 1], "last tag of a replay")
    first_round = item.integer("first_round", low=policy._phase_start, high=policy.rounds)
    stop_round = item.integer("stop_round", low=first_round, high=policy.rounds)
    return OpenReplay(replay, block, first_tag, first_round, sums, last_tag, stop_round)


def _check_told(policy: BlockPolicy) -> None:
    """Refuse more rewards than rounds, and larger sums than such rewards have."""
    epoch, rows, largest = policy._epoch, policy._pending.rows(), 1.0 / policy._divisor
    most = told_at_most(policy.rounds, rows, since=policy._phase_start)
    for part in epoch.blocks:
        epoch.check_sums(part, most=most, largest=largest)
    told = sum(part.told for part in epoch.blocks)
    states.check(told <= most, "number of rewards told")
    policy._features.check(told=told, looked=policy._looks is not None, largest=largest)
    for item in policy._ended:
        epoch.check_sums(item.sums, most=item.stop_round - item.first_round, largest=largest)
    slot = int(policy._schedule.edges[policy._stretch])
    for item in policy._open:
        most = told_at_most(policy.rounds, rows, since=item.first_round)
        epoch.check_sums(item.sums, most=most, largest=largest)
        asked = (slot - item.replay.start) * policy._levels.block_size + policy._position
        states.check(asked <= policy.rounds - item.first_round, "rounds of a replay")  # masked ones do not count


def _check_pending(policy: BlockPolicy, rows: npt.NDArray[np.void]) -> None:
    """Refuse open decisions of laws that were not played in their stretch; a look has -1 - arm in a law's place."""
    looks, drawn = rows[rows["law"] < 0], rows[rows["law"] >= 0]
    states.check(policy._looks is not None or not len(looks), "law of a pending decision")
    epoch = policy._epoch
    recent = looks[looks["tag"] >= epoch.tags[0]]  # those of an earlier epoch may have other numbers of arms
    states.check(bool((recent["law"] == -1 - recent["arm"]).all()), "arm of a pending look")
    live = drawn[drawn["tag"] >= epoch.tags[0]]
    tags, laws = live["tag"], live["law"] - epoch.law_base
    blocks = np.searchsorted(epoch.tags, tags, side="right") - 1
    inside = (tags <= policy._tag) & (laws >= 0) & (laws <= blocks)
    for item in policy._open:
        covered = tags >= item.first_tag
        inside &= (covered == (live["id"] >= item.first_round)) & (~covered | (laws <= item.replay.index))
    for item in policy._ended:
        inside &= ~item.covers(tags) | ((laws <= item.replay.index) & (live["id"] < item.stop_round))
    states.check(bool(inside.all()), "law or stretch of a pending decision")


def _load_watch(policy: BlockPolicy, state: states.Reader) -> None:
    """The detector and the looks, which may be compared with all the rest."""
    watched, looked = state.reader("detector"), state.reader("looks")
    if policy._detector is not None:
        policy._detector.load(watched, policy._epoch, policy._open, rounds=policy.rounds)
    if policy._looks is not None:
        first_round = next(item.first_round for item in policy._open if item.replay.index == policy._schedule.block)
        policy._looks.open(first_round, policy._levels.block_size * 2**policy._schedule.block)
        policy._looks.load(looked, arms=len(policy.arms))
