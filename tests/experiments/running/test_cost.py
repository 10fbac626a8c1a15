from driftbandits.experiments.definitions.specs import Cell, PolicySpec
from driftbandits.experiments.running import runner
from driftbandits.experiments.running.cost import cost_of


def cell(name, settings=None, **world):
    return Cell("switching/1", {"horizon": 10_000, **world}, PolicySpec(name, name, settings or {}), 0)


def cost(name, settings=None, **world):
    return cost_of(cell(name, settings, **world))


def test_the_cost_is_most_for_networks_that_train():
    assert cost("AdaOPNN") > cost("OPNN") > cost("NeuralUCB") > cost("AdaOPKB")
    assert cost("AdaOPNN", {"width": "infinite", "train": False}) == cost("AdaOPNN", {"train": False})
    assert 2.5 < cost("AdaOPNN", {"depth": 5}) / cost("AdaOPNN") < 3.5
    assert cost("AdaOPNN", {"width": 256}) < cost("AdaOPNN") / 10


def test_policies_without_networks_differ_by_what_was_measured():
    assert cost("Uniform") < cost("OPKB") < cost("AdaOPKB") < cost("GPUCB") < cost("WeightedGPUCB") < cost("AutoBandit")
    assert 5 < cost("AutoBandit") / cost("GPUCB") < 20
    assert cost("GPUCB", horizon=20_000) == 2 * cost("GPUCB")
    assert cost("OPKB", horizon=20_000) < 2 * cost("OPKB")  # a design per block, and blocks double


def test_a_wrapper_costs_what_its_base_does_and_more():
    for wrapper in ("BanditOverBandit", "Master"):
        assert cost(wrapper, {"base": "WeightedGPUCB"}) > cost("WeightedGPUCB")
        assert cost("LinUCB") < cost(wrapper, {"base": "LinUCB"}) < cost(wrapper, {"base": "WeightedGPUCB"})
        assert cost(wrapper, {"base": "nobody", "base_settings": 3}) == cost(wrapper)


def test_more_arms_cost_more_whether_counted_or_on_a_box():
    assert cost("LinUCB", size=10) == cost("LinUCB", size=100) == cost("LinUCB")
    assert cost("LinUCB", size=841) == cost("LinUCB", box_error=0.1, dimension=2) > cost("LinUCB")
    assert cost("AdaOPKB", size=400) / cost("AdaOPKB") > cost("GPUCB", size=400) / cost("GPUCB")


def test_settings_of_somebody_elses_world_do_no_harm():
    assert cost("GPUCB", horizon="long", size=None, box_error="small") == cost("GPUCB")
    assert cost("GPUCB", horizon=10**400, size=10**400, box_error=1e-300, dimension=10**6) > cost("GPUCB")


def test_the_longest_are_played_first_and_equals_in_their_order():
    cells = {str(k): cell(name) for k, name in enumerate(("GPUCB", "OPNN", "AutoBandit", "GPUCB", "Uniform"))}
    assert [task[1][0] for task in runner._tasks(cells)] == ["1", "2", "0", "3", "4"]
