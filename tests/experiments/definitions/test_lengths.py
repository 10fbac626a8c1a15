from driftbandits.experiments.definitions.lengths import full, quick
from driftbandits.experiments.definitions.paper import PAPER
from driftbandits.experiments.definitions.specs import cells_of


def test_quick_and_full_change_seeds_and_widths_only():
    experiment = PAPER["switching/1"]
    taste, whole = quick(experiment), full(experiment)
    assert len(taste.seeds) == 2
    assert {p.settings["width"] for p in taste.policies if p.label.startswith("ADA-OPNN")} == {256}
    assert [p.label for p in taste.policies] == [p.label for p in whole.policies]
    assert len(cells_of(whole)) == 25 * len(experiment.policies)
    assert len(cells_of(experiment)) < len(cells_of(whole))
