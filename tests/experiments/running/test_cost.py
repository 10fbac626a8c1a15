from driftbandits.experiments.definitions.specs import Cell, PolicySpec
from driftbandits.experiments.running.cost import cost_of


def test_the_cost_is_most_for_networks_that_train():
    def cost(name, **settings):
        return cost_of(Cell("switching/1", {"horizon": 10_000}, PolicySpec(name, name, settings), 0))

    assert cost("AdaOPNN") > cost("OPNN") > cost("NeuralUCB") > cost("AdaOPKB")
    assert cost("AdaOPNN", width="infinite", train=False) == cost("AdaOPNN", train=False) == cost("AdaOPKB")
    assert cost("AdaOPNN", depth=5) == 3 * cost("AdaOPNN")
    assert cost("AdaOPNN", width=256) < cost("AdaOPNN") / 10
    assert cost_of(Cell("switching/1", {"horizon": 20_000}, PolicySpec("a", "OPKB"), 0)) == 2 * cost("OPKB")
