"""A damaged or hostile file is a StateError and nothing else, before it takes much memory."""

import os
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

import driftbandits as db
from driftbandits import state as states
from driftbandits._util.files import BLANK_SEAL, sealed
from driftbandits.errors import ReentryError, StateError
from driftbandits.state import archive
from tests.state.state_files import GOOD, ONE, STATE, archived, claiming, head, npy, played, resealed, same


@pytest.fixture
def path(tmp_path):
    """A saved STATE, alone in its folder."""
    file = tmp_path / "policy.state"
    states.write(file, STATE)
    return file


# --- damage ---------------------------------------------------------------------------------------------------------


def refused(path, content):
    """The StateError that reading `content` raises; anything else that it raises is a failure of the test."""
    path.write_bytes(content)
    with pytest.raises(StateError) as caught:
        states.read(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < len(str(path)) + 500
    return str(caught.value)


def seen(content):
    """Whether damage is refused; the same as `refused`, without a file and so a hundred times as fast."""
    try:
        archive.unpack(bytes(content), limit=states.LIMIT)
    except StateError:
        return True
    return False


def test_every_flipped_bit_is_seen(path):
    content = bytearray(path.read_bytes())
    for place in range(len(content)):
        for bit in range(8):
            content[place] ^= 1 << bit
            assert seen(content)
            content[place] ^= 1 << bit
    assert not seen(content)
    for place in range(0, len(content), 40):
        refused(path, content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])


@pytest.mark.parametrize("kind", [db.AutoBandit, db.GPUCB])
def test_flipped_bits_of_real_states_are_seen(tmp_path, kind):
    path, rng = tmp_path / "file", np.random.default_rng(0)
    played(kind).save(path)
    content = bytearray(path.read_bytes())
    for place, bit in zip(rng.integers(len(content), size=2000), rng.integers(8, size=2000), strict=True):
        content[place] ^= 1 << int(bit)
        assert seen(content)
        content[place] ^= 1 << int(bit)
    assert not seen(content)


def test_other_lengths_are_seen(path):
    content = path.read_bytes()
    for length in range(len(content)):
        assert seen(content[:length])
    for more in (b"\0", b"PK\x05\x06" + bytes(18), content):
        refused(path, content + more)
        refused(path, more + content)


def test_damage_behind_a_true_seal_raises_nothing_but_state_errors(path):
    """Here the parsers meet the damage: zipfile, zlib, json and NumPy have a dozen kinds of errors for it."""
    content, rng = path.read_bytes(), np.random.default_rng(1)
    end = content.rindex(b"\x1fsha256\x1f")
    read = 0
    for _ in range(3000):
        damaged = bytearray(content)
        for place in rng.integers(end, size=rng.integers(1, 4)):
            damaged[place] ^= 1 << int(rng.integers(8))
        try:
            found = archive.unpack(resealed(damaged), limit=states.LIMIT)
        except StateError:
            continue
        assert same(STATE, found)  # where the byte means nothing, such as a date
        read += 1
    assert 0 < read < 1000


def test_the_makings_of_the_damages_are_right(path):
    path.write_bytes(archived(ONE, GOOD))
    assert states.read(path)["law"].tolist() == [0.25, 0.75]


DAMAGES = {
    "no zip file": b"not a zip file",
    "nothing": b"",
    "only a seal": sealed(BLANK_SEAL.encode()),
    "no text": archived(GOOD, names=["0.npy"]),
    "no seal": archived(ONE, GOOD)[: -len(BLANK_SEAL) - 2] + bytes(2),  # nor a comment
    "deep lists": archived("[" * 100_000 + "]" * 100_000),
    "deep mappings": archived('{"a":' * 500 + "0" + "}" * 500),
    "nan": archived('{"a": NaN}'),
    "infinity": archived('{"a": -Infinity}'),
    "beyond floats": archived('{"a": 1e999}'),
    "giant number": archived('{"a": ' + "9" * 5000 + "}"),
    "no JSON": archived('{"a": '),
    "no UTF-8": archived(b'{"a": "\xff"}'),
    "UTF-16": archived('{"a": 0}'.encode("utf-16")),
    "a list": archived("[]"),
    "a number": archived("3"),
    "an array": archived('{"@array": 0}', GOOD),
    "negative reference": archived('{"a": {"@array": -1}}', GOOD),
    "reference too far": archived('{"a": {"@array": 1}}', GOOD),
    "reference to text": archived('{"a": {"@array": "0"}}', GOOD),
    "reference to a float": archived('{"a": {"@array": 0.0}}', GOOD),
    "reference to a flag": archived('{"a": {"@array": false}}', GOOD),
    "reference to a path": archived('{"a": {"@array": "../state"}}', GOOD),
    "reference with more": archived('{"a": {"@array": 0, "b": 1}}', GOOD),
    "one array twice": archived('{"a": [{"@array": 0}, {"@array": 0}]}', GOOD),
    "three hundred times": archived('{"a": [' + ", ".join(['{"@array": 0}'] * 300) + "]}", GOOD),
    "arrays out of order": archived('{"a": [{"@array": 1}, {"@array": 0}]}', GOOD, GOOD),
    "an array too many": archived(ONE, GOOD, GOOD),
    "another member": archived(ONE, GOOD, b"", names=["state.json", "0.npy", "notes.txt"]),
    "another compression": archived(ONE, GOOD, compression=zipfile.ZIP_BZIP2),
    "no compression": archived(ONE, GOOD, compression=zipfile.ZIP_STORED),
    "encrypted": claiming(archived(ONE, GOOD), 8, b"\x01\x00"),
    "unknown compression": claiming(archived(ONE, GOOD), 10, b"\x63\x00"),
    "array of objects": archived(ONE, npy(head(descr="'|O'"), bytes(16))),
    "pickle": archived(ONE, npy(head(descr="'|O'"), b"cos\nsystem\n(S'true'\ntR.")),
    "negative shape": archived(ONE, npy(head("(-2, -1)"), bytes(16))),
    "giant shape": archived(ONE, npy(head(f"({10**12},)"), bytes(16))),
    "shape beyond all": archived(ONE, npy(head(f"(0, {10**30})"))),
    "endless nothings": archived(ONE, npy(head(f"({10**12},)", "'|S0'"))),
    "too few bytes": archived(ONE, npy(head(), bytes(15))),
    "too many bytes": archived(ONE, npy(head(), bytes(17))),
    "by columns": archived(ONE, npy(head("(1, 2)", order="True"), bytes(16))),
    "unknown type": archived(ONE, npy(head(descr="'<x8'"), bytes(16))),
    "head with code": archived(ONE, npy(head("(__import__('os').getpid(),)"), bytes(16))),
    "head of Python 2": archived(ONE, npy(head("(2L,)"), bytes(16))),
    "deep head": archived(ONE, npy("(" * 110)),
    "another version": archived(ONE, npy(head(), bytes(16), version=b"\x09\x00")),
    "no array": archived(ONE, b"\x93NUM"),
}
with pytest.warns(UserWarning, match="Duplicate name"):
    DAMAGES["a member twice"] = archived(ONE, GOOD, GOOD, names=["state.json", "0.npy", "0.npy"])


@pytest.mark.parametrize("name", DAMAGES)
def test_no_damage_is_anything_but_a_state_error(path, name):
    refused(path, DAMAGES[name])


@pytest.mark.parametrize("error", [TimeoutError, ReentryError, KeyboardInterrupt])
def test_what_the_handler_of_a_signal_raises_is_not_taken_for_damage(path, error, monkeypatch):
    def interrupted(text, **_):
        raise error("inside")

    monkeypatch.setattr(archive.json, "loads", interrupted)
    with pytest.raises(error, match="inside"):
        states.read(path)


def test_errors_of_the_file_system_stay_what_they_are(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError):
        states.read(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        states.read(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StateError, match="not a file"):
        states.read(tmp_path / "pipe")
    states.write(tmp_path / "file", STATE)

    def denied(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(PermissionError):
        states.read(tmp_path / "file")


# --- sizes ----------------------------------------------------------------------------------------------------------

MEGABYTE = 2**20


BOMBS = {
    "an array of zeros": lambda: archived(ONE, npy(head(f"({16 * MEGABYTE},)", "'|b1'"), bytes(16 * MEGABYTE))),
    "a long text": lambda: archived('{"a": "' + " " * 16 * MEGABYTE + '"}'),
    "empty lists": lambda: archived('{"a": [' + ",".join(["[]"] * 100_000) + "]}"),
    "empty mappings": lambda: archived('{"a": [' + ",".join(["{}"] * 100_000) + "]}"),
    "a claim": lambda: claiming(archived(ONE, GOOD), 24, (2**31).to_bytes(4, "little")),
    "many members": lambda: archived("{}", *[b""] * 5000, names=["state.json", *(f"{n}.npy" for n in range(5000))]),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_file_that_would_take_much_memory_is_refused_before_it_does(path, name):
    path.write_bytes(BOMBS[name]())
    tracemalloc.start()
    with pytest.raises(StateError, match=r"and 2\.0 MiB are allowed; if you trust the file, pass limit=\d+") as caught:
        states.read(path, limit=2 * MEGABYTE)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * MEGABYTE
    assert str(path) in str(caught.value)


def test_a_large_file_is_not_even_read(path):
    with path.open("r+b") as file:
        file.truncate(2 * states.LIMIT)  # takes no room on the disk
    with pytest.raises(StateError, match=r"2,048\.0 MiB of memory, and 1,024\.0 MiB are allowed"):
        states.read(path)


def test_a_limit_can_be_raised_and_writing_has_none(path, monkeypatch):
    monkeypatch.setattr(states, "LIMIT", 1000)
    states.write(path, {"zeros": np.zeros(MEGABYTE)})
    with pytest.raises(StateError, match="pass limit="):
        states.read(path, limit=MEGABYTE)
    assert states.read(path, limit=9 * MEGABYTE)["zeros"].shape == (MEGABYTE,)
    assert states.read(path, limit=None)["zeros"].shape == (MEGABYTE,)
