"""How much memory there is, and refusing what cannot be held in it."""

import math
import resource

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from driftbandits._util import checks, linalg
from driftbandits._util.checks import check_memory, memory_limit
from driftbandits.arms.arm_set import ArmSet
from driftbandits.errors import InputError


@pytest.fixture
def little(monkeypatch):
    """A machine of 8 MiB."""
    for module in (checks, linalg):
        monkeypatch.setattr(module, "memory_limit", lambda: 8.0 * 2**20)
    monkeypatch.setattr(checks, "NEVER_REFUSED_BYTES", 0)


def test_the_limit_is_that_of_the_machine_or_less():
    assert 2**28 < memory_limit() <= checks._of_the_machine()


def test_what_needs_more_than_there_is_is_refused_with_the_numbers_and_the_cure():
    limit = memory_limit()
    assert math.isfinite(limit)
    check_memory(int(limit), "just enough", cure="")
    with pytest.raises(
        InputError, match=r"a lake would need [\d.]+ GiB of memory at least, and there are [\d.]+ GiB; walk"
    ):
        check_memory(int(limit) + 2**30, "a lake", cure="walk")
    with pytest.raises(InputError, match=r"\(391 digits\) GiB"):
        check_memory(10**400, "an ocean", cure="swim")


def test_a_system_that_does_not_tell_has_no_limit(monkeypatch, tmp_path):
    monkeypatch.delattr(checks.os, "sysconf")
    monkeypatch.setattr(checks, "_CONTAINER_LIMIT_FILES", (tmp_path / "none",))
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert memory_limit() == math.inf
    check_memory(10**18, "anything", cure="")


def test_a_container_limits_what_there_is(monkeypatch, tmp_path):
    file = tmp_path / "checks.max"
    monkeypatch.setattr(checks, "_CONTAINER_LIMIT_FILES", (file,))
    file.write_text("max\n")
    assert checks._of_the_container() == math.inf
    file.write_text(f"{2**29}\n")
    assert memory_limit() == 2**29


def test_a_process_limits_what_there_is(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2**29, resource.RLIM_INFINITY))
    assert memory_limit() == 2**29


def test_a_kernel_of_too_many_features_is_refused_at_the_first_look(little, monkeypatch):
    """Arms that have next to nothing to do with each other need as many features, of which 400 fit."""
    points = np.random.default_rng(0).random((2_500, 10))
    monkeypatch.setattr(linalg, "_MOST_CANDIDATES", 256)
    monkeypatch.setattr(linalg._Growing, "add", None)  # never reached
    with pytest.raises(InputError, match=r"about [12],\d+ features of 2,500 arms would need .* longer length scale"):
        ArmSet(points, RBF(0.05))


def test_features_are_refused_where_they_outgrow_what_was_foretold(little, monkeypatch):
    monkeypatch.setattr(linalg, "_check_outlook", lambda *_: None)
    monkeypatch.setattr(linalg, "_MOST_CANDIDATES", 256)
    points = np.random.default_rng(0).random((2_500, 10))
    with pytest.raises(InputError, match=r"50\d features of 2,500 arms would need .* larger tolerance"):
        ArmSet(points, RBF(0.05))


def test_a_smooth_kernel_on_many_arms_is_let_through_and_the_look_changes_nothing(little, monkeypatch):
    points = np.random.default_rng(0).random((2_500, 1))
    looked = ArmSet(points, RBF(0.5))
    monkeypatch.setattr(linalg, "memory_limit", lambda: math.inf)
    np.testing.assert_array_equal(ArmSet(points, RBF(0.5)).features, looked.features)
