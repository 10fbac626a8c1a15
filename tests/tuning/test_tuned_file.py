"""The file of settings found: what was written is read, and what is none is refused before a search begins."""

import json

import pytest

from driftbandits.errors import InputError
from driftbandits.tuning.tuned_file import read_found, write_found

ENTRY = {"policy": "Uniform", "settings": {"rate": 1e-05}, "origin": "search", "regret_on_tuning_seeds": 12.5}


def test_what_was_written_is_read(tmp_path):
    path = tmp_path / "tuned.json"
    assert read_found(path) == {}
    found = {"d=10": {"mine": ENTRY, "\N{ROCKET}": ENTRY}, "d=2": {"mine": ENTRY}}
    write_found(path, found, how="by hand")
    assert json.dumps(read_found(path)) == json.dumps(found)  # in the same order


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[]", "holds no keys"),
        (b"5", "holds no keys"),
        (b"{", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"", "is not JSON"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b'{"how": "x", "d=2": 5}', "d=2"),
        (b'{"d=2": 5}', "how is missing"),
        (b'{"how": "x", "d=2": {"mine": {"policy": "Uniform"}}}', "settings is missing"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path, content, message):
    path = tmp_path / "tuned.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_found(path)
    assert str(path) in str(caught.value)
    assert str(caught.value).endswith("move it away")


def test_a_folder_of_that_name(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        read_found(tmp_path)
