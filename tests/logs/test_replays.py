"""Real series, where every counterfactual is known."""

import numpy as np
import pytest

import driftbandits as db
from driftbandits import datasets
from driftbandits.logs import Log, evaluate, regression


@pytest.mark.statistical
def test_values_of_laws_on_digits_are_covered(monkeypatch):
    """12 intervals of 95 %: fewer than 9 cover with probability 0.0002 if each does."""
    monkeypatch.setattr(regression, "MOST_BINS", 300)
    world = datasets.create("digits", offset=0)
    trace = db.simulate(db.Uniform(world.arms, seed=0, reward_range=world.reward_range), world, seed=0)
    log = Log.read(trace, arms=world.arms, reward_range=world.reward_range)
    means = world.means(0, world.horizon)
    rng = np.random.default_rng(0)
    found = {"ips": [], "dr": []}
    for _ in range(12):
        law = rng.dirichlet(np.full(len(world.arms), 0.5))
        truth = float((means @ law).mean())
        for name, rows in found.items():
            value = evaluate(log, law, estimator=name)
            rows.append((value.value - truth, value.low <= truth <= value.high))
    for rows in found.values():
        assert sum(covered for _, covered in rows) >= 9
    squares = {name: np.mean([error**2 for error, _ in rows]) for name, rows in found.items()}
    assert squares["dr"] < squares["ips"]
