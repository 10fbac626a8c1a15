"""The public list is what a user can import, and importing it needs no extra."""

import subprocess
import sys
import types

import pytest

import driftbandits as db

EXTRAS = ["pandas", "pyarrow", "matplotlib", "rich", "cvxpy", "optuna", "typer", "torch", "polars"]
HEAVY = ["sklearn", "scipy.stats", "scipy.optimize", "pandas", "pyarrow", "matplotlib", "optuna", "joblib", "torch"]


def test_the_list_has_no_repeats():
    assert len(db.__all__) == len(set(db.__all__))


@pytest.mark.parametrize("name", db.__all__)
def test_every_public_name_is_there_and_documented(name):
    assert getattr(db, name) is not None
    if isinstance(getattr(db, name), (type, types.FunctionType, types.ModuleType)):
        assert getattr(db, name).__doc__


def test_star_import_gives_exactly_the_list():
    names: dict[str, object] = {}
    exec("from driftbandits import *", names)
    assert set(names) - {"__builtins__"} == set(db.__all__)


def test_nothing_public_is_left_out():
    modules = (types.ModuleType,)
    for name in db.__all__:
        getattr(db, name)  # some come when they are asked for
    found = {name for name, value in vars(db).items() if not name.startswith("_") and not isinstance(value, modules)}
    assert found == set(db.__all__) - {name for name in db.__all__ if isinstance(getattr(db, name), modules)}


@pytest.mark.parametrize("used", ["import driftbandits", "from driftbandits.cli.app import app"])
def test_what_takes_long_to_import_comes_at_first_use(used):
    code = f"import sys; {used}; print(*[name for name in {HEAVY} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []


def test_a_kernel_that_is_no_class_of_scikit_learn_needs_none_of_it():
    code = """
import sys
import numpy as np
import driftbandits as db
arms = db.ArmSet([[0.0], [0.5], [1.0]], kernel=lambda left, right: np.exp(-np.abs(left - right.T)))
policy = db.AdaOPKB(arms, horizon=100, seed=0)
policy.tell(policy.ask().id, 0.5)
print("sklearn" in sys.modules, db.ArmSet([[0.0], [1.0]]).kernel, "sklearn" in sys.modules)
first = db.AutoBandit(db.ArmSet([[0.0], [0.5], [1.0]]), seed=0).ask()
print("sklearn" in sys.modules, db.kernel_from_config({"name": "rbf"}), "sklearn" in sys.modules)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip().split("\n") == ["False RBF(length_scale=0.25) False", "False RBF(length_scale=1) True"]


def test_names_that_come_at_first_use_are_listed_before():
    code = "import driftbandits as db; print(set(db.__all__) <= set(dir(db)), db.NeuralTangentKernel(2))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "True NeuralTangentKernel(depth=2)"


def test_the_core_works_with_every_extra_hidden():
    """scikit-learn imports pandas where it can, so the extras are hidden rather than looked for."""
    code = f"""
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Hidden())
import driftbandits as db
print(db.ArmSet([[0.0], [1.0]]).rank)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "2"


def test_the_core_is_played_without_pandas_and_says_what_tables_need():
    """In the place of an import contract: tables for pandas are made where one is asked for, and nowhere else."""
    code = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pandas", "matplotlib"):
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Hidden())
import driftbandits as db
arms = db.ArmSet.crossed(["red", "blue"], ["mobile", "desktop"])
for kind in (db.AutoBandit, db.GPUCB, db.Uniform):
    policy = kind(arms, seed=0)
    for now in range(40):
        policy.tell(policy.ask(allowed=arms.of("mobile")), 0.5)
    print(len(policy.summary()), len(policy.history.arms), len(policy.interval()))
world = db.environments.create("switching/1", seed=0, horizon=100, switches=(50,), size=10)
trace = db.simulate(db.AdaOPKB(world.arms, horizon=100), world)
tables = (policy.summary().to_pandas, policy.history.to_pandas, trace.to_pandas, lambda: db.plots.beliefs(policy))
for table in tables:
    try:
        table()
    except db.errors.MissingExtraError as error:
        print(error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *played, summary, history, trace, figure = result.stdout.strip().splitlines()
    assert played == ["4 4 2"] * 3
    assert all("needs pandas" in line and "pip install" in line for line in (summary, history, trace))
    assert "needs matplotlib" in figure
