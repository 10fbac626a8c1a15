"""What a release saved loads in every version after it, and along the decisions made then its laws are the same."""

import pytest

import driftbandits as db
from driftbandits import state as states
from driftbandits._util import machine
from driftbandits.live.views import compare
from driftbandits.policies.persistence import MOST_MACHINES
from tests.state.released import CASES, FOLDER, PLAYED, read_decisions

RELEASES = sorted(FOLDER.iterdir())
SAVED = [
    pytest.param(folder, name, id=f"{folder.name}-{name}") for folder in RELEASES for name in read_decisions(folder)
]


# AutoBandit of 0.3.0 cut residuals beyond three deviations, and probed rare successes as other rewards; a state of it
# goes on without.
DECIDES_OTHERWISE = {"AutoBandit" + kind for kind in ("", "-segments", "-mirrored", "-patient", "-two-values")}


@pytest.mark.parametrize(("folder", "name"), SAVED)
def test_a_saved_state_loads_whole_and_goes_on_as_it_did(folder, name):
    case, path, recorded = CASES[name], folder / f"{name}.state", read_decisions(folder)[name]
    policy = case.load(path)
    assert policy.rounds == PLAYED
    if folder.name == db.__version__:  # it gives back what it read; what was added since is not in the file
        read = states.read(path)
        difference = compare(_known_to(read, policy.state_dict()), read)
        assert difference.size == 0.0, difference.place
    made = case.follow(policy, recorded["next"], list(recorded["waiting"]))
    near = 1e-6 if name not in DECIDES_OTHERWISE else 0.2  # as on any kind of machine, or as its behaviour is now
    assert made == [pytest.approx(row.probability, abs=near) for row in recorded["next"]]


def _known_to(read, state):
    """The state without names that the file does not have, in lists of them too."""
    if isinstance(read, list | tuple) and isinstance(state, list | tuple) and len(read) == len(state):
        return [_known_to(one, now) for one, now in zip(read, state, strict=True)]
    if not isinstance(read, dict):
        return state
    return {name: _known_to(read[name], value) for name, value in state.items() if name in read}


def test_this_version_has_saved_every_policy():
    """Where it fails: `python -m tests.state.record_release`, and commit what it writes."""
    folder = FOLDER / db.__version__
    assert set(read_decisions(folder)) == set(CASES) >= set(db.POLICIES)
    assert {path.stem for path in folder.glob("*.state")} == set(CASES)


def test_states_stay_small():
    assert sum(path.stat().st_size for path in FOLDER.rglob("*.*") if path.is_file()) < len(RELEASES) * 2**20


def test_the_states_have_seen_something():
    """Decisions are open in all, and the change was found by some."""
    policies = {name: CASES[name].load(FOLDER / db.__version__ / f"{name}.state") for name in CASES}
    assert all(policy.pending for policy in policies.values())
    assert sum(policy.changes_found > 0 for policy in policies.values()) >= 5


def test_after_many_machines_a_state_still_says_in_which_features_it_is_written(monkeypatch):
    """A state of 0.3.0 keeps its features however often it moves; fewer machines than it has seen are named."""
    name = "AutoBandit-mirrored"
    policy = CASES[name].load(FOLDER / "0.3.0" / f"{name}.state")
    law = policy.law()
    for number in range(40):
        monkeypatch.setattr(machine, "fingerprint", lambda number=number: f"machine {number}")
        state = policy.state_dict()
        policy = type(policy).restore(policy.arms, state)
    assert state["provenance"][0][0] == 0
    assert state["provenance"][-1][1] == "machine 39"
    assert len(state["provenance"]) <= MOST_MACHINES
    assert policy.law().tolist() == law.tolist()
