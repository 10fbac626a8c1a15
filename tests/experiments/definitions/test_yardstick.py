from driftbandits.experiments.definitions.oracle_settings import single_settings
from driftbandits.experiments.definitions.paper import PAPER
from driftbandits.experiments.definitions.real_series import REAL, is_real
from driftbandits.experiments.definitions.rows import AUTOBANDIT, ONE_SETTING_ENDING, TUNED_HERE_ENDING
from driftbandits.experiments.definitions.specs import cells_of
from driftbandits.experiments.definitions.suite import SUITE, WRONG_KERNELS
from driftbandits.experiments.definitions.yardstick import KNOWS_CHANGES_LABEL, YARDSTICK
from driftbandits.experiments.groups import find_experiments
from driftbandits.experiments.running.build import build_world


def spec(experiment, label):
    return next(policy for policy in YARDSTICK[experiment].policies if policy.label == label)


def test_it_has_every_suite_world_the_papers_and_the_real_series():
    assert len(YARDSTICK) == len(SUITE) + 3 + len([name for name in REAL if name.count("/") == 1])
    assert [e.id for e in find_experiments(["yardstick"])] == list(YARDSTICK)
    for name, world in SUITE.items():
        mine = YARDSTICK[name.replace("suite/", "yardstick/")]
        assert (mine.environment, mine.settings, mine.common) == (world.environment, world.settings, world.common)
        assert mine.seeds == tuple(range(10))


def test_autobandit_is_in_every_one_of_them_and_in_every_real_series():
    for experiment in (*YARDSTICK.values(), *REAL.values()):
        assert experiment.policies[0] == AUTOBANDIT


def test_baselines_are_told_kernel_and_noise():
    window = spec("yardstick/noisy/d3", f"SW-GPUCB{TUNED_HERE_ENDING}")
    assert (window.settings["noise"], window.settings["ridge"]) == (0.5, 2.5)
    master = spec("yardstick/slow/d2", f"GPUCB+MASTER{ONE_SETTING_ENDING}")
    assert (master.settings["noise"], master.settings["base_settings"]["ridge"]) == (0.1, 0.1)
    for policy in YARDSTICK["yardstick/mismatched/d2"].policies:
        assert policy == AUTOBANDIT or policy.kernel == WRONG_KERNELS["mismatched"]


def test_on_real_series_nobody_knows_the_noise():
    for policy in single_settings():
        assert policy.settings["noise"] is None
    assert spec("yardstick/real/flights", f"SW-GPUCB{ONE_SETTING_ENDING}").settings["ridge"] == 0.1
    assert is_real(YARDSTICK["yardstick/real/flights"])


def test_who_is_told_the_changes_restarts_at_them():
    for name, experiment in YARDSTICK.items():
        told = [policy for policy in experiment.policies if policy.label == KNOWS_CHANGES_LABEL]
        assert len(told) == bool(experiment.settings.get("switches"))
        if told:
            period = told[0].settings["period"]
            world = build_world(experiment.environment, experiment.settings, 0)
            rounds = list(range(period, world.horizon - 1, period))
            assert rounds == [int(t) for t in world.change_rounds], name


def test_ada_opkb_on_the_papers_worlds_is_what_its_figures_play():
    figures = {cell.key for name in ("switching/1", "switching/2", "cosine/slow") for cell in cells_of(PAPER[name])}
    mine = [cell for e in YARDSTICK.values() if "/paper/" in e.id for cell in cells_of(e) if cell.policy != AUTOBANDIT]
    assert {cell.key for cell in mine} <= figures
    assert len(mine) == 3 * 2 * 10
