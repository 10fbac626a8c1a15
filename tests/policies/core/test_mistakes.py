"""What the page on writing a policy says of mistakes is what one sees."""

import re

import numpy as np
import pytest

import driftbandits as db
from tests.pages import ROOT

ARMS = db.ArmSet(np.linspace(0, 1, 4)[:, None])


class Whole(db.Policy):
    """A policy without mistakes, which plays any arm."""

    def _start(self, horizon):
        self._told = np.zeros(len(self.arms))

    def _law(self):
        return np.full(len(self.arms), 1 / len(self.arms))

    def _estimate(self):
        return self._told

    def _learn(self, feedback):
        np.add.at(self._told, feedback.arms, feedback.rewards)

    def _export(self):
        return {"told": self._told.copy()}

    def _import(self, state):
        self._told = state.array("told", np.float64, (len(self.arms),))


def mine(base=Whole, **hooks):
    """A class called Mine with these hooks in place of those of the base."""
    return type("Mine", (base,), hooks)


def unkept(self, arms, *, rate=0.1, **common):
    Whole.__init__(self, arms, **common)


MISTAKES = {
    "a hook is not written": lambda _: mine(db.Policy)(ARMS),
    "`_law` returns a list, integers, or numbers that do not add up to 1": lambda _: sums_to_four(),
    "a hook calls `self.ask()` or `self.law()`": lambda _: mine(_law=lambda self: self.ask())(ARMS).ask(),
    "a setting is not kept as an attribute": lambda _: mine(__init__=unkept)(ARMS).state_dict(),
    "`_export` returns an object": lambda folder: saves_an_object(folder),
    "`_export` gives a list where `_import` reads an array": lambda _: restored(
        _export=lambda self: {"latest": [0.1]},
        _import=lambda self, state: state.array("latest", np.float64, (None,)),
    ),
    "`state.array` without its type or shape": lambda _: restored(
        _import=lambda self, state: state.array("told", np.float64)
    ),
    "an array is read as another type than it was exported with": lambda _: restored(
        _export=lambda self: {"arms": np.array([0, 1])},
        _import=lambda self, state: state.array("arms", np.float64, (None,)),
    ),
    "the constructor does not call `super().__init__(arms, **common)`": lambda _: mine(
        __init__=lambda self, arms: None
    )(ARMS).ask(),
}


def restored(**hooks):
    policy = mine(**hooks)(ARMS)
    policy.ask()
    return type(policy).restore(ARMS, policy.state_dict())


def sums_to_four():
    policy = mine(_law=lambda self: np.ones(4) if self.rounds == 7 else Whole._law(self))(ARMS)
    policy.ask(size=7)
    policy.ask()


def saves_an_object(folder):
    policy = mine(_export=lambda self: {"self": self})(ARMS)
    policy.ask()
    policy.save(folder / "mine.state")


def rows_of_the_page():
    """The mistakes of the table and the errors that answer them, without those that a check answers."""
    page = (ROOT / "docs" / "extending.md").read_text()
    table = page.split("| mistake | message |")[1].split("\n\n")[0]
    rows = [row.split(" | ") for row in table.splitlines()[2:]]
    return {mistake.removeprefix("| "): answer for mistake, answer in rows if "fails" not in answer}


def test_the_table_has_no_other_mistakes():
    assert set(rows_of_the_page()) == set(MISTAKES)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered_as_the_page_says(mistake, tmp_path):
    answer = re.search("`([^`]*)`", rows_of_the_page()[mistake])[1]
    kind, _, message = answer.partition(": ")
    with pytest.raises(Exception, match=re.escape(message.partition("...")[0].strip())) as caught:
        MISTAKES[mistake](tmp_path)
    assert type(caught.value).__name__ == kind


def test_a_setting_may_have_any_name():
    def sized(self, arms, *, size=3, given=1, settings=2, **common):
        Whole.__init__(self, arms, **common)
        self.size, self.given, self.settings = size, given, settings

    kind = mine(__init__=sized)
    policy = kind(ARMS, size=5, given=6)
    assert policy.state_dict()["settings"] == {"size": 5, "given": 6, "settings": 2}
    assert kind.restore(ARMS, policy.state_dict()).size == 5
