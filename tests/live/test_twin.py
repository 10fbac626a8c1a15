"""A slow twin: a journal kept as a Python list, and a policy replayed from it for every answer.

Hypothesis drives both with random calls: decisions, rewards, time that passes, pauses, restarts, closing and opening,
snapshots; commits fail among them, before they are stored and after.
"""

import itertools
import tempfile
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from driftbandits import live
from driftbandits.errors import NotStoredError
from driftbandits.live.definition import define
from driftbandits.testing.helpers import require_equal
from tests.live.conftest import Clock
from tests.live.replicas import replica_of, snapshot_now

ARMS = ["low", "mid", "high"]
SECONDS = 60
USUAL = {"arms": ARMS, "policy": "DiscountedUCB", "seed": 5, "fallback": "mid"}
DEFINITIONS = {
    "for ever": define(**USUAL),
    "patience": define(**USUAL, patience=SECONDS, missing=0.25),
    "forgetting": define(**USUAL, patience=SECONDS, missing="forget"),
}


class Twin:
    """All that has happened, as calls in a list; what follows from them is found anew each time."""

    def __init__(self, definition, clock):
        self.definition, self.clock = definition, clock
        self.calls = []
        self.open = {}  # when each open decision was made, by its place in the list

    def policy(self):
        made, asked, paused, born = self._new(), {}, False, 0
        for number, (kind, value) in enumerate(self.calls):
            if kind == "decide" and not paused:
                asked[number] = (born, made.ask(allowed=value))
            elif kind in ("reward", "forget", "expire"):
                places, *reward = value
                ids = [asked[place][1].id for place in places if place in asked and asked[place][0] == born]
                if ids:
                    getattr(made, {"reward": "tell"}.get(kind, kind))(ids, *reward)
            elif kind in ("pause", "resume"):
                paused = kind == "pause"
            elif kind == "restart":
                made, born = self._new(), born + 1
        return made, paused, asked

    def _new(self):
        policy = self.definition.build_policy(self.definition.build_arms(self.definition.arms))
        policy.law()
        return policy

    def decide(self, allowed):
        _, paused, _ = self.policy()
        self.open[len(self.calls)] = self.clock.now
        self.calls.append(("decide", allowed))
        if paused:
            names = allowed or ARMS
            return ("mid", 1.0, True) if "mid" in names else (None, 1.0 / len(names), True)
        _, _, asked = self.policy()
        made = asked[len(self.calls) - 1][1]
        return ARMS[made.arm], made.probability, False

    def close(self, kind, place, *reward):
        """Whether the decision was open."""
        was_open = self.open.pop(place, None) is not None
        if was_open:
            self.calls.append((kind, ([place], *reward)))
        return was_open

    def sweep(self):
        """Whoever writes first closes what has run out of patience."""
        patience = self.definition.patience
        due = [] if patience is None else [p for p, at in self.open.items() if at + 1e6 * patience <= self.clock.now]
        if due:
            self.calls.append(("expire", (due,)))
        for place in due:
            del self.open[place]


class Failing:
    """Lets a commit fail when told: before anything is stored, or after."""

    def __init__(self, experiment):
        self.next = None
        sa.event.listen(experiment.view.engine, "commit", self._before)
        self.attach(experiment)

    def attach(self, experiment):
        link = experiment._writer._link
        self._writing, link.writing = link.writing, self._transaction

    def _before(self, _):
        if self.next == "before":
            self.next = None
            raise sa.exc.OperationalError("COMMIT", None, Exception("injected: nothing is stored"))

    @contextmanager
    def _transaction(self):
        with self._writing() as connection:
            yield connection
        if self.next == "after":
            self.next = None
            raise sa.exc.OperationalError("COMMIT", None, Exception("injected: stored, but nobody knows"))


OTHERS = ("masked", "forget", "wait", "pause", "resume", "restart", "reopen", "snapshot")
CALLS = st.lists(
    st.tuples(
        st.sampled_from(["decide"] * 4 + ["reward"] * 3 + list(OTHERS)),
        st.integers(0, 10**6),
        st.sampled_from([None, None, None, "before", "after"]),
    ),
    min_size=1,
    max_size=25,
)


@pytest.mark.parametrize("name", DEFINITIONS)
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(CALLS)
def test_the_experiment_answers_as_its_slow_twin(name, calls):
    clock, definition = Clock(), DEFINITIONS[name]
    with tempfile.TemporaryDirectory() as folder, live.open(f"sqlite:///{folder}/twin.db", clock=clock) as database:
        database.make("twin", definition)
        twin, ids = Twin(definition, clock), []
        failing, keys = Failing(database.experiment("twin")), itertools.count()
        for kind, number, failure in calls:
            experiment = database.experiment("twin")
            if kind == "reopen":
                experiment.close()
                failing.attach(database.experiment("twin"))
            elif kind == "snapshot":
                snapshot_now(experiment)
            elif kind == "wait":
                clock.pass_seconds(number % SECONDS)
            else:
                failing.next = failure
                _step(experiment, twin, kind, number, f"key {next(keys)}", ids)
                failing.next = None
        _compare(database.experiment("twin"), twin)


def _compare(experiment, twin):
    policy, paused, _ = twin.policy()
    replica = replica_of(experiment)
    require_equal(replica.policy.state_dict(), policy.state_dict())
    assert replica.paused == paused
    assert len(replica.open) == len(twin.open)
    assert experiment.view.check().problems == ()


def _again(call):
    """A call that is sent again, with the same key, until it is known to be stored."""
    for _ in range(3):
        try:
            return call()
        except NotStoredError:
            continue
    raise AssertionError("still not stored")


def _step(experiment, twin, kind, number, key, ids):
    if kind in ("reward", "forget") and not ids:
        return
    twin.sweep()
    if kind in ("decide", "masked"):
        allowed = [ARMS[number % 3], ARMS[(number + 1) % 3]] if kind == "masked" else None
        expected = twin.decide(allowed)
        found = _again(lambda: experiment.decide(allowed=allowed, key=key))
        arm = found.arm if expected[0] is None else expected[0]
        assert (found.arm, found.probability, found.fallback) == (arm, *expected[1:])
        ids.append((found.id, len(twin.calls) - 1))
    elif kind == "reward":
        name, place = ids.pop(number % len(ids))
        reward = (number % 8) / 8
        accepted = twin.close("reward", place, reward)
        answer = _again(lambda: experiment.reward(name, reward, key=key))
        assert (answer.accepted, answer.late) == (int(accepted), int(not accepted))
    elif kind == "forget":
        name, place = ids.pop(number % len(ids))
        twin.close("forget", place)
        assert _again(lambda: experiment.forget(name, key=key)) == 1
    else:
        _again(lambda: getattr(experiment, kind)(key=key))
        twin.calls.append((kind, None))
