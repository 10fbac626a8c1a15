"""How the benchmark of hidden changes counts and judges, on made-up runs."""

import numpy as np
import pytest

from benchmarks import hidden
from benchmarks.hidden import AUTO, GPUCB, WINDOW, Run, adopted, allowed, draw, rows_of, show
from driftbandits import environments


def test_an_arm_is_adopted_with_half_of_some_two_hundred_rounds_before_the_next_change():
    world = environments.create("switching", seed=0, horizon=1_000, switches=[300, 600], kind="hidden", size=10)
    first, second = (int(world.means(change)[0].argmax()) for change in (300, 600))
    arms = np.full(1_000, int(world.means(0)[0].argmax()))
    arms[350:449] = first  # 99 rounds
    arms[700:900:2] = second  # every other of 200
    assert adopted(world, arms) == [False, True]
    arms[550] = first
    assert adopted(world, arms) == [False, True]  # too far away
    arms[449] = first
    assert adopted(world, arms) == [True, True]


@pytest.mark.parametrize(
    ("world", "rival", "most"),
    [("hidden-3/d2", 347.0, 520.5), ("level-3/d10", 50.0, 300.0), ("stationary/d3", 80.0, 230.0)],
)
def test_what_is_allowed_is_half_more_or_the_slack(world, rival, most):
    assert allowed(world, rival) == most


def test_losses_come_first_and_a_stationary_world_is_judged_by_gpucb(capsys, tmp_path):
    def runs(world, policy, regret, adopted=0, hidden=0):
        return [Run(world, policy, seed, regret, adopted, hidden, 0) for seed in range(2)]

    rows = rows_of(
        [
            *runs("stationary/d2", AUTO, 100.0),
            *runs("stationary/d2", GPUCB, 50.0),
            *runs("stationary/d2", WINDOW, 25.0),
            *runs("hidden-3/d2", AUTO, 600.0, adopted=2, hidden=3),
            *runs("hidden-3/d2", WINDOW, 300.0),
            Run("hidden-3/d2", AUTO, 2, 999.0, 0, 3, 0),  # the window has not played this seed
            *runs("level-3/d2", WINDOW, 70.0),
        ]
    )
    show(rows)
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("| hidden-3/d2 | 2 | 600 ± 0 | 300 | 450 | 2.00 | 4 of 6 |")
    assert lines[2].endswith("| no |")
    assert lines[3].startswith("| stationary/d2 | 2 | 100 ± 0 | 50 | 150 | 4.00 |  |")
    assert lines[-1] == "geometric mean over the window, 2 worlds: 2.83"
    draw(rows, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_runs_that_are_kept_are_not_played_again(tmp_path, monkeypatch):
    played = []
    monkeypatch.setattr(hidden, "KEPT", tmp_path / "results" / "hidden.jsonl")
    monkeypatch.setattr(hidden, "play", lambda *task: played.append(task) or Run(*task, 1.0, 0, 0, 0))
    first = hidden.collect(["slow/d2"], [10], jobs=1)
    again = hidden.collect(["slow/d2"], [10, 11], jobs=1)
    assert played == [("slow/d2", label, seed) for seed in (10, 11) for label in (AUTO, WINDOW)]
    assert again[:2] == first
