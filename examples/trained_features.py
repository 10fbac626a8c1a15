"""Does training improve the features of a network? Error on arms never played, by ridge regression on each feature map.

Half of the arms are played 1,000 times; the other half is predicted. A feature map that has learned what matters
predicts it better than the one the network was drawn with.
"""

import numpy as np

import driftbandits as db
from driftbandits.neural import ArmsSeen, NetworkModel

RIDGES = (1e-3, 1e-2, 0.1, 1.0, 10.0)


def error(features: np.ndarray, seen: ArmsSeen, truth: np.ndarray) -> float:
    """Root mean square error on the arms not seen, with the best ridge for this feature map."""
    unseen = seen.counts == 0
    errors = []
    for ridge in RIDGES:
        information = features.T @ (features * seen.counts[:, None]) + ridge * np.eye(features.shape[1])
        guess = features @ np.linalg.solve(information, features.T @ seen.sums)
        errors.append(float(np.sqrt(np.mean((guess - truth)[unseen] ** 2))))
    return min(errors)


def main(width: int = 256, seeds: int = 3) -> None:
    print("world              RBF(0.2)  drawn network  trained network  predicting 0")
    for name in ("cosine/stationary", "switching"):
        rows = []
        for seed in range(seeds):
            world = db.environments.create(name, seed=seed)
            truth = world.means(0, 1)[0]
            draws = np.random.default_rng(seed)
            arms = draws.choice(draws.permutation(len(truth))[: len(truth) // 2], 1000)
            seen = ArmsSeen.none(len(truth))
            seen.add_many(arms, truth[arms] + 0.1 * draws.standard_normal(len(arms)))
            model = NetworkModel(
                world.arms.points, seed=seed, width=width, depth=3, steps=100, learning_rate="auto", weight_decay=10.0
            )
            trained = model.view(model.train(seen).network)
            maps = (world.arms.features, model.initial.features, trained.features, np.zeros((len(truth), 1)))
            rows.append([error(features, seen, truth) for features in maps])
        print(f"{name:<18} {'{:>8.3f} {:>14.3f} {:>16.3f} {:>13.3f}'.format(*np.mean(rows, axis=0))}")


if __name__ == "__main__":
    main()
