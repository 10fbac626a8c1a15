import numpy as np
import pytest

from driftbandits.tuning.study import count_cells, slots, standing

RUNGS = ((8, 1), (4, 3), (2, 6))


def play_to_the_end(scores, worlds, order):
    """Play what is missing one cell at a time, in an order of one's own, and give the final standing and the count."""
    regrets = [{} for _ in scores]
    played = 0
    while not (now := standing(regrets, RUNGS, worlds=worlds)).finished:
        left = [(point, slot) for point, missing in now.missing.items() for slot in missing]
        point, slot = left[order.integers(len(left))]
        regrets[point][slot] = scores[point][slot]
        played += 1
    return now, regrets, played


@pytest.mark.parametrize("worlds", [1, 2])
def test_the_order_of_play_changes_nothing(worlds):
    draws = np.random.default_rng(0)
    scores = [{slot: draws.normal() for slot in slots(6, worlds)} for _ in range(8)]
    ends = [play_to_the_end(scores, worlds, np.random.default_rng(seed)) for seed in range(5)]
    assert all(end[:2] == ends[0][:2] for end in ends)
    assert {played for _, _, played in ends} == {count_cells(8, RUNGS, worlds=worlds)}


def test_the_better_go_on():
    scores = [{slot: float(point) for slot in slots(6, 1)} for point in (5, 3, 7, 0, 6, 2, 4, 1)]
    now, regrets, _ = play_to_the_end(scores, 1, np.random.default_rng(0))
    assert now.alive == (3, 7)
    assert [len(r) for r in regrets] == [1, 3, 1, 6, 1, 3, 1, 6]


def test_of_equals_the_first_goes_on():
    scores = [dict.fromkeys(slots(6, 1), 1.0) for _ in range(8)]
    assert play_to_the_end(scores, 1, np.random.default_rng(0))[0].alive == (0, 1)


def test_regrets_of_later_seeds_do_not_count_early():
    """A process with old settings may have recorded more than a rung asks for."""
    regrets = [{(0, 0): 1.0, (1, 0): 99.0}, {(0, 0): 2.0}, {(0, 0): 3.0}, {(0, 0): 4.0}]
    assert standing(regrets, ((4, 1), (1, 2)), worlds=1).alive == (0,)


def test_a_single_point_plays_all_seeds():
    assert count_cells(1, RUNGS, worlds=2) == 12
    assert standing([{}], RUNGS, worlds=1).missing == {0: ((0, 0),)}
