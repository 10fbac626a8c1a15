"""Played by any policy: driftbandits run --environment examples/own_world.py:weekends --policy AdaOPKB --set weeks=4"""

import numpy as np
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits.environments import Piecewise
from driftbandits.environments.noise import TruncatedGaussianNoise


def weekends(seed: int, weeks: int = 10, visitors: int = 100) -> Piecewise:
    """Twenty prices and `visitors` per day: at weekends people pay more. A seed draws how much."""
    prices = np.linspace(5.0, 15.0, 20)
    weekday, weekend = np.random.default_rng(seed).uniform([6.0, 10.0], [10.0, 14.0])
    values = [0.8 * np.exp(-(((prices - best) / 1.5) ** 2)) for best in (weekday, weekend)] * weeks
    friday, monday = 5 * visitors, 7 * visitors
    switches = [week * monday + day for week in range(weeks) for day in (0, friday)][1:]
    arms = db.ArmSet(prices[:, None], kernel=RBF(2.0))
    return Piecewise(
        arms, values, horizon=weeks * monday, switches=switches, noise=TruncatedGaussianNoise(0.1), name="weekends"
    )


if __name__ == "__main__":
    print(f"weekends passes {len([check(weekends) for check in db.testing.ENVIRONMENT_CHECKS])} checks")
    world = weekends(seed=0)
    print(f"{len(world.arms)} prices, {world.horizon:,} rounds, {len(world.change_rounds)} changes")
    for kind in (db.GPUCB, db.EventTriggeredGPUCB):
        trace = db.simulate(kind(world.arms, seed=0), world, seed=0)
        print(f"{kind.__name__:19} regret {trace.regret.sum():5.0f}, changes found: {len(trace.changes)}")
