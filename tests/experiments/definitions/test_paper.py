from driftbandits.experiments.definitions.paper import FIVE_MATRICES, PAPER
from driftbandits.experiments.running.build import build_world


def test_the_paper_has_its_worlds_at_three_dimensions_and_its_seeds():
    for name in ("switching/1", "switching/2", "cosine/stationary", "cosine/slow"):
        assert len(PAPER[name].seeds) == (50 if name == "cosine/stationary" else 25)
        for dimension in (2, 3):
            assert PAPER[f"{name}/d{dimension}"].settings["dimension"] == dimension
        assert min(p.seeds or 25 for p in PAPER[name].policies) >= (5 if name == "cosine/slow" else 8)
    assert PAPER["switching/1"].settings["dimension"] == 10
    world = build_world("switching/1", PAPER["switching/1"].settings, 0)
    assert world.change_rounds.tolist() == [3000]


def test_the_five_matrices_of_the_authors_code():
    for name, experiment in FIVE_MATRICES.items():
        assert {policy.settings["depth"] for policy in experiment.policies} == {5}, name
        assert all(policy.name in {"AdaOPNN", "OPNN"} for policy in experiment.policies)
