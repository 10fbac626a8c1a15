import itertools

from reproduction.suite import SUITE, SUITE_DIMENSIONS, SUITE_POLICIES, SUITE_WORLDS


def test_suite_has_every_world_at_every_dimension():
    assert set(SUITE) == {f"suite/{n}/d{d}" for n, d in itertools.product(SUITE_WORLDS, SUITE_DIMENSIONS)}
    for experiment in SUITE.values():
        assert [policy.label for policy in experiment.policies] == list(SUITE_POLICIES)
