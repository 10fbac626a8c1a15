"""ADA-OPKB with the constants of its proofs finds a change: two opposite arms, 40 million rounds, a flip at 18 million.

With these constants the first block alone is longer than most experiments, and nothing can be found in ten thousand
rounds. Given the rounds they do fire. Run it with `python examples/theory_finds_a_change.py`; it takes half a minute.
"""

import sys

import numpy as np

import driftbandits as db

HORIZON, FLIP = 40_000_000, 18_000_000
MEAN, NOISE = 0.9, 0.1  # of the better arm, the other pays the opposite; B + S = 1, so nothing is rescaled
STRETCH = 1_000_000  # rounds asked for at once, at most


def play(horizon: int, flip: int, seed: int = 0) -> db.AdaOPKB:
    """The whole run; all rewards change their sign after round `flip`."""
    arms = db.ArmSet.from_features([[1.0], [-1.0]])
    constants = db.Constants.theory(bound=MEAN, noise=NOISE)
    policy = db.AdaOPKB(arms, horizon=horizon, seed=seed, constants=constants)
    draw = np.random.default_rng(seed)
    while policy.rounds < horizon:
        sign, end = (1.0, flip) if policy.rounds < flip else (-1.0, horizon)
        batch = policy.ask(size=min(policy.steady_rounds(), end - policy.rounds, STRETCH))
        means = sign * MEAN * arms.points[batch.arms, 0]
        policy.tell(batch.ids, means + draw.uniform(-NOISE, NOISE, len(means)))
    return policy


def main() -> None:
    horizon = int(sys.argv[1]) if len(sys.argv) > 1 else HORIZON
    flip = horizon * FLIP // HORIZON
    policy = play(horizon, flip)
    print(f"{horizon:,} rounds, all rewards change their sign after round {flip:,}.")
    for change in policy.changes:
        first, last = change.interval
        print(f"Restart after round {change.round:,}: gaps in rounds {first:,} to {last:,} differ from those before by")
        print(f"{change.statistic:.2f}, and no more than {change.threshold:.2f} can be chance.")
    if not policy.changes:
        print("No restart: with these constants the thresholds are above any gap there can be.")
    print(f"Believed at the end: {np.round(policy.estimate(), 2).tolist()}")


if __name__ == "__main__":
    main()
