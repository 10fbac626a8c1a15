"""A saved trace is read as it was written, or refused."""

import json
import re
import stat

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from driftbandits._util.files import BLANK_SEAL, sealed
from driftbandits.errors import InputError
from driftbandits.simulation import Trace
from driftbandits.types import Change

CHANGE = Change(20, 1, 0, (10, 20), 0, 2.5, 1.0, (0, 3), (0.5, 0.25), (-0.5, 0.25), ("a", "b"))
COLUMNS = {
    "arm": np.arange(40, dtype=np.int32) % 5,
    "reward": np.sin(np.arange(40.0)),
    "regret": np.linspace(0.0, 1.0, 40),
    "probability": np.full(40, 0.2),
    "law": np.arange(40) // 10,
}
REST = {"start": 3, "changes": (CHANGE,), "seconds": 0.25, "policy": "GPUCB(5 arms)", "world": "switching", "seed": 7}


@pytest.fixture
def path(tmp_path):
    """A saved trace, alone in its folder."""
    file = tmp_path / "run.parquet"
    Trace(**{name: column.copy() for name, column in COLUMNS.items()}, **REST).to_parquet(file)
    return file


def refused(path, content):
    path.write_bytes(content)
    try:
        Trace.from_parquet(path)
    except InputError as error:
        return "is not a saved trace, or is damaged" in str(error)
    return False


def test_a_trace_comes_back_whole(path):
    trace = Trace.from_parquet(path)
    for name, column in COLUMNS.items():
        found = getattr(trace, name)
        assert (found.dtype, found.tobytes()) == (column.dtype, column.tobytes())
        assert not found.flags.writeable
    assert {name: getattr(trace, name) for name in REST} == REST
    assert pq.read_table(path)["arm"].to_pylist() == COLUMNS["arm"].tolist()  # by any other program too


def test_every_damage_is_an_input_error(path):
    content, rng = bytearray(path.read_bytes()), np.random.default_rng(0)
    for place, bit in zip(rng.integers(len(content), size=300), rng.integers(8, size=300), strict=True):
        content[place] ^= 1 << int(bit)
        assert refused(path, content)
        content[place] ^= 1 << int(bit)
    for length in range(0, len(content), 50):
        assert refused(path, content[:length])
    assert refused(path, content + b"\0")


def test_damage_behind_a_true_seal_is_an_input_error_or_harmless(path):
    """Here the pages' own checksums meet it, or Arrow's parser."""
    content, rng = path.read_bytes(), np.random.default_rng(1)
    pages = content.index(b"driftbandits")
    for place in rng.integers(pages, size=150):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        blank = re.sub(rb"\x1fsha256\x1f[0-9a-f]{64}", BLANK_SEAL.encode(), bytes(damaged))
        if not refused(path, sealed(blank)):
            trace = Trace.from_parquet(path)
            assert all(np.array_equal(getattr(trace, name), column) for name, column in COLUMNS.items())


def saved(path, columns=COLUMNS, **notes):
    """Write a file with a true seal."""
    plain = {**REST, "changes": [], "format": 2, **notes}
    metadata = {"driftbandits": json.dumps(plain), "driftbandits.seal": BLANK_SEAL}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), sink)
    path.write_bytes(sealed(sink.getvalue().to_pybytes()))


@pytest.mark.parametrize(
    "wrong",
    [
        {"format": 1},
        {"changes": [{"round": 1}]},
        {"changes": None},
        {"surprise": 1},
        {"columns": {name: column for name, column in COLUMNS.items() if name != "law"}},
        {"columns": {**COLUMNS, "arm": COLUMNS["reward"]}},
        {"columns": {**COLUMNS, "reward": [None] * 40}},
    ],
    ids=["format", "change", "no changes", "surprise", "column gone", "column of another type", "nothing in it"],
)
def test_what_a_trace_does_not_have_is_refused(path, wrong):
    saved(path)
    assert len(Trace.from_parquet(path)) == 40
    saved(path, **wrong)
    with pytest.raises(InputError, match="not a saved trace"):
        Trace.from_parquet(path)


def test_a_missing_file_is_the_usual_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        Trace.from_parquet(tmp_path / "none")


def test_permissions_and_links_are_kept_and_nothing_is_left(path):
    path.chmod(0o600)
    link = path.with_name("link")
    link.symlink_to(path)
    Trace.from_parquet(path).to_parquet(link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(file.name for file in path.parent.iterdir()) == ["link", "run.parquet"]
    assert len(Trace.from_parquet(link)) == 40
