"""A saved state loads, or says that it does not: whatever happens while it is written, and whatever happens to it."""

import importlib.metadata
import io
import json
import stat
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import driftbandits as db
from driftbandits import state as states
from driftbandits.errors import StateError
from tests.concurrent_files import read_while_writing
from tests.state.state_files import GOOD, STATE, archived, played, same


@pytest.fixture
def path(tmp_path):
    """A saved STATE, alone in its folder."""
    file = tmp_path / "policy.state"
    states.write(file, STATE)
    return file


# --- round trips ----------------------------------------------------------------------------------------------------


def test_a_state_comes_back_to_the_bit_and_can_be_written_to(path):
    found = states.read(path)
    assert same(STATE, found)
    assert found["law"].flags.writeable
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_equal_states_are_equal_files(path):
    before = path.read_bytes()
    states.write(path, states.read(path))
    assert path.read_bytes() == before


def test_other_programs_can_read_the_file(path):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert json.loads(archive.read("state.json"))["law"] == {"@array": 0}
        assert np.load(io.BytesIO(archive.read("0.npy"))).tolist() == [0.25, 0.75]


@pytest.mark.parametrize("kind", [db.AutoBandit, db.GPUCB, db.CalibratedOPKB, db.Master])
def test_policies_are_saved_whole(tmp_path, kind):
    policy = played(kind)
    policy.save(tmp_path / "file")
    assert same(policy.state_dict(), states.read(tmp_path / "file"))


def test_a_policy_keeps_permissions_and_links(tmp_path):
    policy, file, link = played(db.GPUCB, rounds=5), tmp_path / "file", tmp_path / "link"
    policy.save(file)
    file.chmod(0o600)
    link.symlink_to(file)
    policy.tell(5, 0.5)
    policy.save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert same(policy.state_dict(), states.read(file))


# --- writing --------------------------------------------------------------------------------------------------------


def test_the_check_sees_what_was_read_back_before_the_old_file_goes(path):
    seen = []

    def look(found):
        seen.append((same({**STATE, "flag": False}, found), same(STATE, states.read(path))))

    states.write(path, {**STATE, "flag": False}, check=look)
    assert seen == [(True, True)]
    assert states.read(path)["flag"] is False


def test_a_state_that_does_not_load_leaves_the_old_file(path):
    def refuse(found):
        raise StateError("state.engine is missing")

    with pytest.raises(StateError, match=r"policy\.state was not written, .* state\.engine is missing"):
        states.write(path, {"format": states.FORMAT}, check=refuse)
    assert same(STATE, states.read(path))
    assert [file.name for file in path.parent.iterdir()] == [path.name]


CIRCLE: list = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("-inf"), object(), {1, 2}, np.array([None]), {"@array": 0}, {1: 0, "1": 1}, CIRCLE, 10**5000],
    ids=["nan", "infinite", "object", "set", "array of objects", "reference", "equal keys", "circle", "giant"],
)
def test_what_a_file_cannot_keep_leaves_the_old_file(path, value):
    with pytest.raises(StateError, match="cannot be saved"):
        states.write(path, {**STATE, "value": value})
    assert same(STATE, states.read(path))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python 3.13 closes half a member
@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError, MemoryError])
def test_an_interrupted_save_raises_what_interrupted_it(path, error, monkeypatch):
    """zipfile cannot be closed in the middle of a member, and would raise something else in its place."""

    def interrupted(*_):
        raise error("inside")

    monkeypatch.setattr(zipfile.zlib, "compressobj", interrupted)
    with pytest.raises(error, match="inside"):
        states.write(path, STATE)
    assert same(STATE, states.read(path))


def test_two_threads_save_while_a_third_loads(path):
    """No load fails, and each gives one of the two states, never a mixture."""
    versions = [{"name": name, "values": np.full(5_000, name)} for name in (1, 2)]
    states.write(path, versions[0])
    failed, loads = [], []

    def save(state):
        try:
            for _ in range(40):
                states.write(path, state)
        except OSError as error:
            failed.append(error)

    def load():
        try:
            found = states.read(path)
            loads.append(found["name"] == found["values"][0] == found["values"][-1])
        except (StateError, OSError) as error:
            failed.append(error)

    read_while_writing(load, save, versions)
    assert failed == []
    assert loads
    assert all(loads)


def saver(path, handler):
    """A process that saves to `path` over and over; at SIGTERM it runs `handler`, which may save too, and says so.

    It imports the modules of states and nothing else of the library: that would take seconds.
    """
    folder = Path(db.__file__).parent
    code = f"""
import os, signal, sys, types
for name, folder in (("driftbandits", {str(folder)!r}), ("driftbandits.policies", {str(folder / "policies")!r})):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
import numpy as np
from driftbandits import state as states
def handler(*_):
    {handler}
    print("handled", flush=True)
signal.signal(signal.SIGTERM, handler)
print("ready", flush=True)
number = 0
while True:
    number += 1
    states.write({str(path)!r}, {{"number": number, "values": np.full(20_000, number) + np.arange(20_000) % 97}})
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    process.stdout.readline()
    return process


def whole(path):
    found = states.read(path)
    return (found["values"] == found["number"] + np.arange(20_000) % 97).all()


def test_killed_at_any_moment_the_file_loads_and_the_next_save_cleans_up(path):
    states.write(path, {"number": 0, "values": np.arange(20_000) % 97})
    for wait in (0.0, 0.003, 0.011, 0.017):
        process = saver(path, "pass")
        time.sleep(wait)
        process.kill()
        process.communicate()
        assert whole(path)
    states.write(path, STATE)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_handler_that_saves_while_the_same_file_is_saved(path):
    states.write(path, {"number": 0, "values": np.arange(20_000) % 97})
    process = saver(path, f"states.write({str(path)!r}, {{'number': -1, 'values': np.arange(20_000) % 97 - 1}})")
    for number in range(40):
        time.sleep(0.0007 * (number % 7))
        process.terminate()
        assert process.stdout.readline() == b"handled\n"
        assert whole(path)
    process.kill()
    process.communicate()
    assert whole(path)


# --- formats and versions -------------------------------------------------------------------------------------------


def test_the_installed_version_is_the_one_that_states_name():
    assert db.__version__ == importlib.metadata.version("driftbandits")


def refusal(path, content):
    path.write_bytes(content)
    with pytest.raises(StateError) as caught:
        states.read(path)
    return str(caught.value)


def test_another_format_is_named_with_the_version_that_wrote_it(path):
    found = refusal(path, archived('{"format": 7, "library": "0.3.0", "law": {"@array": 0}}', GOOD))
    assert "state has format 7, written by driftbandits 0.3.0" in found
    assert f"this is driftbandits {db.__version__}, which reads format {states.FORMAT}" in found
    assert "damaged" not in found


def test_a_format_before_seals_and_versions_is_named_too(path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("state.json", '{"format": 1, "law": {"@array": 0}}')
        archive.writestr("0.npy", GOOD)
    assert "state has format 1, written by an unknown driftbandits" in refusal(path, buffer.getvalue())


@pytest.mark.parametrize("state", [{}, {"format": "2"}, {"format": True}, {"format": states.FORMAT}, {"format": None}])
def test_a_state_without_format_or_version_is_refused(state):
    with pytest.raises(StateError, match=r"format|library"):
        states.check_format(states.Reader(state))


def test_the_name_of_a_version_cannot_break_the_message():
    with pytest.raises(StateError) as caught:
        states.check_format(states.Reader({"format": 9, "library": "1.0\n\x1b[31m" + "x" * 10_000}))
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_policies_say_what_wrote_their_state():
    state = played(db.GPUCB, rounds=3).state_dict()
    assert (state["format"], state["library"]) == (states.FORMAT, db.__version__)
    with pytest.raises(StateError, match=r"format 7, written by driftbandits 0\.3\.0"):
        db.GPUCB.restore(played(db.GPUCB, rounds=1).arms, {**state, "format": 7, "library": "0.3.0"})
