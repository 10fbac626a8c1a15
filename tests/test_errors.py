"""One tree of errors, which survive the way between processes."""

import inspect
import pickle
import re
import tomllib
from pathlib import Path

import pytest

from driftbandits import errors

ERRORS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.DriftbanditsError)]


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_is_documented_in_the_tree(kind):
    assert kind.__name__ in errors.__doc__
    assert kind.__doc__


def test_errors_are_also_what_python_programmers_catch():
    for kind in (errors.InputError, errors.KernelError, errors.RewardError, errors.StateError):
        assert issubclass(kind, ValueError)
    assert issubclass(errors.UnknownDecisionError, KeyError)
    assert issubclass(errors.MissingExtraError, ImportError)
    assert issubclass(errors.ConvergenceWarning, UserWarning)


PLAIN = [kind for kind in ERRORS if kind not in (errors.ConvergenceError, errors.MissingExtraError)]


@pytest.mark.parametrize("kind", PLAIN)
def test_plain_errors_pickle(kind):
    again = pickle.loads(pickle.dumps(kind("a message with {braces}")))  # noqa: S301
    assert type(again) is kind
    assert str(again) == "a message with {braces}"


def test_unknown_decision_shows_its_message_unquoted():
    assert str(errors.UnknownDecisionError("id 7 was never given out")) == "id 7 was never given out"
    assert str(errors.UnknownDecisionError()) == ""


def test_convergence_error_keeps_the_best_iterate():
    again = pickle.loads(pickle.dumps(errors.ConvergenceError("stopped", best={"gap": 0.5})))  # noqa: S301
    assert isinstance(again, errors.ConvergenceError)
    assert again.best == {"gap": 0.5}
    assert str(again) == "stopped"


def test_extras_that_errors_name_exist():
    root = Path(__file__).parent.parent
    known = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    sources = [path.read_text() for path in (root / "src").rglob("*.py")]
    named = {extra for source in sources for extra in re.findall(r'extra="(\w+)", purpose', source)}
    assert {"experiments", "torch"} <= named <= set(known)


def test_missing_extra_says_the_install_line_after_pickling_too():
    error = errors.MissingExtraError("matplotlib", extra="experiments", purpose="drawing a figure")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    cure = "in a checkout of driftbandits, install it with: pip install '.[experiments]'"
    assert str(again) == str(error) == f"drawing a figure needs matplotlib; {cure}"
