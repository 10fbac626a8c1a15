"""The replay schedule: structure, smallest index, frequencies and the share of replayed rounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandits.design.blocks import Replay, build_schedule, draw_schedule, replay_probability
from tests.design.expected import replayed_share

PROPERTY = settings(max_examples=60, deadline=None, derandomize=True)


def index_of_slot(schedule, slot):
    """m_t by the paper's definition: the smallest index of all scheduled intervals that hold the slot."""
    return min(replay.index for replay in schedule.replays if replay.start <= slot < replay.stop)


@PROPERTY
@given(block=st.integers(0, 8), lowest=st.integers(0, 9), seed=st.integers(0, 2**32 - 1))
def test_structure_of_a_drawn_schedule(block, lowest, seed):
    schedule = draw_schedule(block, np.random.default_rng(seed), lowest=lowest)
    assert schedule.block == block
    assert Replay(start=0, stop=2**block, index=block) in schedule.replays  # the block itself
    assert len(set(schedule.replays)) == len(schedule.replays)
    for replay in schedule.replays:
        assert replay.stop - replay.start == 2**replay.index
        assert replay.start % 2**replay.index == 0
        assert 0 <= replay.start < replay.stop <= 2**block
        assert replay.index == block or lowest <= replay.index < block

    assert schedule.edges[0] == 0
    assert schedule.edges[-1] == 2**block
    assert (np.diff(schedule.edges) > 0).all()
    assert len(schedule) == len(schedule.indices) == len(schedule.edges) - 1
    for s in range(len(schedule)):  # the smallest index wins, in every slot of the stretch
        slots = range(int(schedule.edges[s]), int(schedule.edges[s + 1]))
        assert {index_of_slot(schedule, slot) for slot in slots} == {int(schedule.indices[s])}
    ends = {edge for replay in schedule.replays for edge in (replay.start, replay.stop)}
    assert ends == set(schedule.edges.tolist())  # a replay never ends inside a stretch, and no edge is idle
    begun = [replay for edge in schedule.edges[:-1] for replay in schedule.starting(int(edge))]
    assert sorted(begun) == sorted(schedule.replays)


def test_smallest_index_wins_where_three_overlap():
    replays = [Replay(0, 8, 3), Replay(0, 4, 2), Replay(2, 4, 1), Replay(3, 4, 0), Replay(6, 7, 0)]
    schedule = build_schedule(3, replays)
    assert schedule.edges.tolist() == [0, 2, 3, 4, 6, 7, 8]
    assert schedule.indices.tolist() == [2, 1, 0, 3, 0, 3]


def test_same_generator_same_schedule():
    one, other = (draw_schedule(6, np.random.default_rng(3)) for _ in range(2))
    assert one.replays == other.replays
    assert draw_schedule(6, np.random.default_rng(4)).replays != one.replays


def test_replay_probability_is_the_square_root_of_the_share_of_the_block():
    assert [replay_probability(m, 4) for m in range(5)] == pytest.approx([0.25, 8**-0.5, 0.5, 0.5**0.5, 1.0])


@pytest.mark.statistical
@pytest.mark.parametrize("lowest", [0, 3])
def test_frequency_of_every_index(lowest):
    """Replays of index m in block 7 are binomial with chance 2^((m - 7) / 2) per slot.

    Two-sided, 5 standard errors each; 7 + 4 indices: a wrong alarm with probability below 1e-5. Seeds are fixed.
    """
    block, draws = 7, 1500
    counts = np.zeros(block + 1)
    generator = np.random.default_rng(11 + lowest)
    for _ in range(draws):
        for replay in draw_schedule(block, generator, lowest=lowest).replays:
            counts[replay.index] += 1
    assert counts[block] == draws
    assert (counts[:lowest] == 0).all()
    for index in range(lowest, block):
        trials, chance = draws * 2 ** (block - index), 2.0 ** ((index - block) / 2)
        error = np.sqrt(trials * chance * (1 - chance))
        assert abs(counts[index] - trials * chance) <= 5 * error, f"index {index}"


@pytest.mark.statistical
def test_every_slot_is_equally_likely():
    """Slots of index 2 in block 5 have chance 2^(-3/2) each; 8 slots, 5 standard errors: wrong alarm below 1e-5."""
    draws, generator = 3000, np.random.default_rng(5)
    counts = np.zeros(8)
    for _ in range(draws):
        for replay in draw_schedule(5, generator).replays:
            if replay.index == 2:
                counts[replay.start // 4] += 1
    chance = 2.0**-1.5
    assert (np.abs(counts - draws * chance) <= 5 * np.sqrt(draws * chance * (1 - chance))).all()


@pytest.mark.statistical
@pytest.mark.parametrize(("block", "share"), [(1, None), (3, 0.905), (6, 0.949), (9, 0.958)])
def test_replayed_share(block, share):
    """By simulation: the share of slots that follow an earlier law.

    Mean over independent schedules, 5 estimated standard errors; 4 cases: wrong alarm below 1e-5.
    """
    if share is not None:
        assert replayed_share(block) == pytest.approx(share, abs=5e-4)
    generator = np.random.default_rng(block)
    shares = []
    for _ in range(400):
        schedule = draw_schedule(block, generator)
        shares.append(np.diff(schedule.edges)[schedule.indices < block].sum() / 2**block)
    error = np.std(shares) / np.sqrt(len(shares))
    assert abs(np.mean(shares) - replayed_share(block)) <= 5 * error
    assert error < 0.03


def test_replayed_share_counts_only_the_indices_that_are_replayed():
    assert replayed_share(5, lowest=4) == pytest.approx(2**-0.5)
    assert replayed_share(4, lowest=4) == 0.0
