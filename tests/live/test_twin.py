"""A slow twin: a journal kept as a Python list, and a policy replayed from it for every answer.

Hypothesis drives both with random calls, commits that fail among them: before they are stored, and after.
"""

import itertools
import tempfile
from pathlib import Path

import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from driftbandits import live
from driftbandits.errors import NotStoredError
from driftbandits.live.definition import define
from driftbandits.policies import find_policy
from driftbandits.testing.helpers import require_equal
from tests.live.conftest import Clock
from tests.live.players import player_of

ARMS = ["low", "mid", "high"]
DEFINITION = define(arms=ARMS, policy="DiscountedUCB", seed=5, fallback="mid")


class Twin:
    """All that has happened, as calls in a list; what follows from them is found anew each time."""

    def __init__(self):
        self.calls = []

    def policy(self):
        policy, asked, paused, born = find_policy("DiscountedUCB"), {}, False, 0
        made = self._new()
        assert isinstance(made, policy)
        for number, (kind, value) in enumerate(self.calls):
            if kind == "decide" and not paused:
                asked[number] = (born, made.ask(allowed=value))
            elif kind == "reward":
                place, reward = value
                if place in asked and asked[place][0] == born:
                    made.tell(asked[place][1].id, reward)
            elif kind in ("pause", "resume"):
                paused = kind == "pause"
            elif kind == "restart":
                made, born = self._new(), born + 1
        return made, paused, asked

    def _new(self):
        policy = DEFINITION.build_policy(DEFINITION.build_arms(DEFINITION.arms))
        policy.law()
        return policy

    def decide(self, allowed):
        _, paused, _ = self.policy()
        self.calls.append(("decide", allowed))
        if paused:
            names = allowed or ARMS
            return ("mid", 1.0, True) if "mid" in names else (None, 1.0 / len(names), True)
        _, _, asked = self.policy()
        made = asked[len(self.calls) - 1][1]
        return ARMS[made.arm], made.probability, False


class Failing:
    """Lets a commit fail when told: before anything is stored, or after."""

    def __init__(self, experiment):
        self.next = None
        engine = experiment._view.engine
        sa.event.listen(engine, "commit", self._before)
        link = experiment._writer._link
        object.__setattr__(link, "turn", self)

    def _before(self, _):
        if self.next == "before":
            self.next = None
            raise sa.exc.OperationalError("COMMIT", None, Exception("injected: nothing is stored"))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.next == "after" and kind is None:
            self.next = None
            raise sa.exc.OperationalError("COMMIT", None, Exception("injected: stored, but nobody knows"))


CALLS = st.lists(
    st.tuples(
        st.sampled_from(["decide", "decide", "decide", "masked", "reward", "reward", "pause", "resume", "restart"]),
        st.integers(0, 10**6),
        st.sampled_from([None, None, None, "before", "after"]),
    ),
    min_size=1,
    max_size=25,
)


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(CALLS)
def test_the_experiment_answers_as_its_slow_twin(calls):
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder)}/twin.db"
        with live.open(url, clock=Clock()) as database:
            database.make("twin", DEFINITION)
            experiment, twin = database.experiment("twin"), Twin()
            failing, keys, ids = Failing(experiment), itertools.count(), []
            for kind, number, failure in calls:
                failing.next = failure
                _step(experiment, twin, kind, number, f"key {next(keys)}", ids)
                failing.next = None
            policy, paused, _ = twin.policy()
            player = player_of(experiment)
            require_equal(player.policy.state_dict(), policy.state_dict())
            assert player.paused == paused
            assert experiment._view.check().fine


def _again(call):
    """A call that is sent again, with the same key, until it is known to be stored."""
    for _ in range(3):
        try:
            return call()
        except NotStoredError:
            continue
    raise AssertionError("still not stored")


def _step(experiment, twin, kind, number, key, ids):
    if kind in ("decide", "masked"):
        allowed = [ARMS[number % 3], ARMS[(number + 1) % 3]] if kind == "masked" else None
        expected = twin.decide(allowed)
        found = _again(lambda: experiment.decide(allowed=allowed, key=key))
        arm = found.arm if expected[0] is None else expected[0]
        assert (found.arm, found.probability, found.fallback) == (arm, *expected[1:])
        ids.append((found.id, len(twin.calls) - 1))
    elif kind == "reward" and ids:
        name, place = ids.pop(number % len(ids))
        reward = (number % 8) / 8
        assert _again(lambda: experiment.reward(name, reward, key=key)).accepted == 1
        twin.calls.append(("reward", (place, reward)))
    elif kind in ("pause", "resume", "restart"):
        if kind == "restart":  # has no key: told once, and asked whether it was stored
            before = experiment.summary().restarts
            try:
                experiment.restart()
            except NotStoredError:
                if experiment.summary().restarts == before:
                    return
        else:
            _again(getattr(experiment, kind))
        twin.calls.append((kind, None))
