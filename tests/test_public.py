"""The public list is what a user can import, and importing it needs no extra."""

import subprocess
import sys
import types

import pytest

import driftbandits as db

EXTRAS = ["pandas", "pyarrow", "matplotlib", "rich", "cvxpy", "optuna", "typer", "torch", "polars"]


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
    found = {name for name, value in vars(db).items() if not name.startswith("_") and not isinstance(value, modules)}
    assert found == set(db.__all__) - {name for name in db.__all__ if isinstance(getattr(db, name), modules)}


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
