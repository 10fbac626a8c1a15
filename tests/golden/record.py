"""Record the golden runs: `python -m tests.golden.record`."""

from __future__ import annotations

import numpy as np

from driftbandits.policies import POLICIES
from tests.golden.play import PLAY, ROUNDS, arm_set
from tests.golden.settings import SETTINGS
from tests.golden.test_golden import RECORDED


def main() -> None:
    """Play every policy in both worlds and write arms and total regret."""
    columns = {}
    for name, settings in SETTINGS.items():
        for world, play in PLAY.items():
            policy = POLICIES[name](arm_set(), horizon=ROUNDS, seed=5, reward_range=(-1.0, 1.0), **settings)
            arms, regrets = play(policy)
            columns[f"{name}.{world}.arms"] = arms.astype(np.uint8)
            columns[f"{name}.{world}.regret"] = np.float64(regrets.sum())
            print(f"{name:24s} {world:6s} {regrets.sum():9.3f}  {policy.changes.__len__()} changes", flush=True)
    np.savez_compressed(RECORDED, **columns)


if __name__ == "__main__":
    main()
