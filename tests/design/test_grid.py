"""A sample of the 200 problems of `benchmarks/design_grid.py`, and those whose leverages are flat over many arms."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from benchmarks.design_grid import POINTS, Problem, certified, costs_of, features_of, problems, solve_all
from driftbandits.arms.arm_set import ArmSet
from driftbandits.design import solve_design
from tests.design.oracles import certificate

SAMPLE = {100: 10, 1_000: 8, 10_000: 4}


@pytest.fixture(scope="module")
def square():
    """Features of points of the unit square, by their number."""
    made = {}

    def build(size):
        if size not in made:
            made[size] = ArmSet(np.random.default_rng(0).random((size, 2)), RBF(0.2)).features
        return made[size]

    return build


@pytest.mark.parametrize("size", [30_000, 100_000])
@pytest.mark.parametrize("regulariser", [0.11, 1.0])
def test_flat_leverages_over_many_arms(square, size, regulariser):
    """The arms of smallest gradient lie in one region: settled alone, they push the violation into the next."""
    features, asked = square(size), 0.05
    design = solve_design(features, regulariser=regulariser, tolerance=asked)
    assert design.gap <= asked
    assert certified(features, np.zeros(size), regulariser, design.probabilities) <= 1.01 * asked
    assert design.probabilities.min() >= 0.0
    assert design.probabilities.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("size", SAMPLE)
def test_every_gap_asked_for_is_reached(size):
    chosen = [problem for problem in problems() if problem.arms == size][:: 50 // SAMPLE[size]]
    solved = [row for row, _ in solve_all(chosen, gaps=(0.05, 1e-3, 1e-6))]
    assert len(solved) == 3 * len(chosen)
    for row in solved:  # the second certificate has rounding of its own where costs are large
        assert row.gap <= 1.01 * row.asked + 1e-12 * row.problem.costs, row


def test_the_grid_covers_what_it_names():
    found = problems()
    assert len(found) == len(set(found)) == 200
    for name, count in (("kernel", 3), ("points", 3), ("regulariser", 7), ("costs", 5), ("arms", 5)):
        assert len({getattr(problem, name) for problem in found}) == count


@pytest.mark.parametrize("points", POINTS)
def test_the_two_certificates_agree(points):
    """The one in double precision and the one in extended precision, at laws far from and near the optimum."""
    problem = Problem(100, "RBF", points, 1e-4, 100.0)
    places, features = features_of(problem.arms, problem.kernel, problem.points)
    costs = costs_of(places, problem.costs, smooth=True)
    law = np.random.default_rng(0).dirichlet(np.full(100, 0.3))
    near = solve_design(features, costs, regulariser=problem.regulariser, tolerance=1e-3).probabilities
    for one in (law / law.sum(), near):
        exact = certificate(features, costs, problem.regulariser, one)
        assert certified(features, costs, problem.regulariser, one) == pytest.approx(exact, rel=1e-6, abs=1e-7)
