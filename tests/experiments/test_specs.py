import dataclasses

import pytest

from driftbandits import Uniform
from driftbandits.errors import InputError
from driftbandits.experiments.specs import Cell, PolicySpec, cells_of
from reproduction.suite import SUITE


def test_a_key_names_what_is_played():
    cell = Cell("switching/1", {"horizon": 500}, PolicySpec("A", "OPKB", {"constants": "published"}), 0)
    assert cell.key == dataclasses.replace(cell, policy=dataclasses.replace(cell.policy, label="B", seeds=3)).key
    others = [
        dataclasses.replace(cell, seed=1),
        dataclasses.replace(cell, settings={"horizon": 501}),
        dataclasses.replace(cell, environment="switching/2"),
        dataclasses.replace(cell, policy=PolicySpec("A", "OPKB")),
        dataclasses.replace(cell, policy=dataclasses.replace(cell.policy, kernel={"name": "linear"})),
    ]
    assert len({cell.key, *(other.key for other in others)}) == 6
    with pytest.raises(InputError, match="plain values"):
        _ = dataclasses.replace(cell, settings={"noise": object()}).key


def test_a_policy_that_plays_differently_has_other_keys(monkeypatch):
    """So that runs kept from before are never mixed with those of now; all others keep theirs."""
    cells = [
        Cell("switching/1", {"horizon": 500}, PolicySpec("A", name), 0) for name in ("Uniform", "OPKB", "mine.py:A")
    ]
    before = [cell.key for cell in cells]
    monkeypatch.setattr(Uniform, "behaviour", 2)
    assert [cell.key == key for cell, key in zip(cells, before, strict=True)] == [False, True, True]


def test_common_settings_reach_every_policy_and_its_own_win():
    experiment = SUITE["suite/heavy-tails/d2"]
    assert {cell.policy.settings["out_of_range"] for cell in cells_of(experiment)} == {"clip"}
    own = PolicySpec("mine", "OPKB", {"out_of_range": "error"})
    mixed = dataclasses.replace(experiment, policies=(own,))
    assert cells_of(mixed)[0].policy.settings["out_of_range"] == "error"


def test_a_class_in_place_of_its_name_is_refused_with_the_cure():
    with pytest.raises(InputError, match=r"'mine' needs the name of a registered policy, or file.py:Class.*compare"):
        PolicySpec("mine", Uniform)
