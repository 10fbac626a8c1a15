"""Our stores pass the shipped suite, and every check of it finds the fault it is for."""

import dataclasses
import json

import numpy as np
import pytest

from driftbandits.experiments.folder_store import FolderStore
from driftbandits.experiments.stores import MemoryStore, plain_result, result_of
from driftbandits.testing import STORE_CHECKS
from driftbandits.testing import stores as checks


@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__)
def test_the_folder(check, tmp_path):
    check(lambda: FolderStore(tmp_path / "not" / "there yet"))


@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__)
def test_memory(check):
    store = MemoryStore()
    check(lambda: store)


class Plain:
    """A store of JSON texts in a dictionary; those below each have one fault."""

    def __init__(self):
        self.texts = {}

    def finished(self):
        return set(self.texts)

    def load(self, cells, *, on_damage):
        return {key: result_of(json.loads(self.texts[key]), cell) for key, cell in cells.items() if key in self.texts}

    def write(self, key, result):
        self.texts[key] = json.dumps(plain_result(result))

    def __str__(self):
        return "a dictionary"


@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__)
def test_one_of_ones_own(check):
    store = Plain()
    check(lambda: store)


class HasAGhost(Plain):
    def finished(self):
        return {*self.texts, "a ghost"}


class Rounds(Plain):
    def write(self, key, result):
        super().write(key, dataclasses.replace(result, regret=np.round(result.regret, 6)))


class SingleFloats(Plain):
    def load(self, cells, *, on_damage):
        found = super().load(cells, on_damage=on_damage)
        return {key: dataclasses.replace(r, rounds=r.rounds.astype(np.float64)) for key, r in found.items()}


class LosesEmptyTuples(Plain):
    def load(self, cells, *, on_damage):
        found = super().load(cells, on_damage=on_damage)
        return {key: dataclasses.replace(r, changes=r.changes or (0,)) for key, r in found.items()}


class GivesAll(Plain):
    def load(self, cells, *, on_damage):
        cell = next(iter(cells.values()))
        return {key: result_of(json.loads(text), cell) for key, text in self.texts.items()}


class KeepsTheFirstLabel(MemoryStore):
    def load(self, cells, *, on_damage):
        return {key: self._results[key] for key in cells if key in self._results}


class KeepsTheFirst(Plain):
    def write(self, key, result):
        if key not in self.texts:
            super().write(key, result)


class KeepsNoCopy(MemoryStore):
    def write(self, key, result):
        self._results[key] = result


class TakesAllForDamaged(Plain):
    def load(self, cells, *, on_damage):
        for key in cells.keys() & self.texts.keys():
            on_damage(key)
        return {}


class SaysNothing(Plain):
    __str__ = object.__repr__


class Forgets(Plain):
    def load(self, cells, *, on_damage):
        return {}


class LosesWrites(Plain):
    """Knows that it was written to, and has only the first result."""

    def load(self, cells, *, on_damage):
        first = dict(list(self.texts.items())[:1])
        return {key: result_of(json.loads(first[key]), cell) for key, cell in cells.items() if key in first}


class ListsKeys(Plain):
    def finished(self):
        return list(self.texts)


class GivesPlainValues(Plain):
    def load(self, cells, *, on_damage):
        return {key: json.loads(self.texts[key]) for key in cells if key in self.texts}


BROKEN = [
    (checks.is_empty_at_first, HasAGhost),
    (checks.gives_back_every_number, Rounds),
    (checks.gives_back_every_number, SingleFloats),
    (checks.gives_back_every_number, TakesAllForDamaged),
    (checks.keeps_results_without_changes, LosesEmptyTuples),
    (checks.gives_only_what_was_asked_for, GivesAll),
    (checks.results_carry_the_asked_cell, KeepsTheFirstLabel),
    (checks.the_later_result_counts, KeepsTheFirst),
    (checks.what_is_kept_is_a_copy, KeepsNoCopy),
    (checks.says_where_it_is, SaysNothing),
    (checks.a_run_goes_on_from_it, Forgets),
]


@pytest.mark.parametrize(("check", "broken"), BROKEN, ids=lambda value: value.__name__)
def test_a_broken_store_is_found(check, broken):
    store = broken()
    with pytest.raises(AssertionError):
        check(lambda: store)


NEEDS_RESULTS = [
    checks.gives_back_every_number,
    checks.keeps_results_without_changes,
    checks.holds_the_same_when_opened_again,
    checks.results_carry_the_asked_cell,
    checks.the_later_result_counts,
    checks.what_is_kept_is_a_copy,
]


@pytest.mark.parametrize("check", NEEDS_RESULTS, ids=lambda check: check.__name__)
def test_results_that_are_lost_or_of_another_type_are_named(check):
    for broken, message in [(Forgets, "it loads 0$"), (GivesPlainValues, "is loaded as a dict, not a CellResult")]:
        store = broken()
        with pytest.raises(AssertionError, match=message):
            check(lambda store=store: store)


def test_a_store_that_loses_writes_is_found():
    store = LosesWrites()
    with pytest.raises(AssertionError, match="of 2 results that were written it loads 1"):
        checks.gives_back_every_number(lambda: store)


def test_keys_must_be_a_set():
    store = ListsKeys()
    with pytest.raises(AssertionError, match="finished gives a list; it must give a set of keys"):
        checks.is_empty_at_first(lambda: store)


def test_a_store_that_forgets_when_it_is_closed_is_found():
    with pytest.raises(AssertionError, match="opened again"):
        checks.holds_the_same_when_opened_again(MemoryStore)


def test_every_check_has_a_broken_twin():
    found = {check for check, _ in BROKEN} | {checks.holds_the_same_when_opened_again}
    assert found == set(STORE_CHECKS)
