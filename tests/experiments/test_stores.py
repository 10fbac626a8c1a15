import dataclasses
import errno
import fcntl
import json
import os
import resource
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from driftbandits._util.files import BLANK_SEAL, sealed
from driftbandits.detection import Detection
from driftbandits.errors import InputError
from driftbandits.experiments import folder_store as store_module
from driftbandits.experiments.folder_store import FolderStore
from driftbandits.experiments.specs import Cell, PolicySpec
from driftbandits.experiments.stores import CellResult, DamagedPartWarning, StoreError, damage_summary, read
from reproduction.tuning import missing


def a_cell(seed=0, label="a label"):
    return Cell("switching/1", {"horizon": 500, "switches": (250,)}, PolicySpec(label, "OPKB", {"ridge": 0.1}), seed)


def keep(store, result):
    store.write(result.cell.key, result)


def a_result(cell):
    return CellResult(
        cell=cell,
        rounds=np.array([1, 250, 500]),
        regret=np.array([0.1, 1 / 3, 7e-300]),
        changes=(260, 400),
        detection=Detection(delays=(10,), missed=0, false_alarms=1),
        turnover=0.25,
        seconds=1.5,
    )


@pytest.fixture
def store(tmp_path):
    return FolderStore(tmp_path / "not" / "there yet")


def test_a_result_comes_back_bit_for_bit(store):
    result = a_result(a_cell())
    keep(store, result)
    (again,) = read(store, [a_cell()])
    assert again.cell == result.cell
    assert again.rounds.dtype == np.int64
    assert again.rounds.tolist() == result.rounds.tolist()
    assert again.regret.tolist() == result.regret.tolist()
    assert (again.changes, again.detection) == (result.changes, result.detection)
    assert (again.turnover, again.seconds) == (0.25, 1.5)
    assert not again.regret.flags.writeable


def test_a_run_without_changes_comes_back_too(store):
    nothing = dataclasses.replace(a_result(a_cell()), changes=(), detection=Detection((), 1, 0))
    keep(store, nothing)
    (again,) = read(store, [a_cell()])
    assert again.changes == again.detection.delays == ()


def test_a_part_explains_itself(store):
    keep(store, a_result(a_cell(seed=7)))
    metadata = pq.read_schema(store.path(a_cell(seed=7).key)).metadata
    cell = json.loads(metadata[b"driftbandits.cell"])
    assert cell["environment"] == "switching/1"
    assert cell["settings"] == {"horizon": 500, "switches": [250]}
    assert cell["policy"]["settings"] == {"ridge": 0.1}
    assert cell["seed"] == 7
    assert metadata[b"driftbandits.schema"] == b"2"
    assert pq.read_table(store.path(a_cell(seed=7).key))["regret"][0].as_py() == [0.1, 1 / 3, 7e-300]


def test_finished_cells_are_read_in_the_asked_order_under_the_asked_label(store):
    for seed in (0, 1, 2):
        keep(store, a_result(a_cell(seed)))
    asked = [a_cell(2, "other"), a_cell(9), a_cell(0), a_cell(0, "twice")]
    assert [(r.cell.seed, r.cell.policy.label) for r in read(store, asked)] == [
        (2, "other"),
        (0, "a label"),
        (0, "twice"),
    ]
    assert missing(store, [*asked, a_cell(9, "again")]) == [a_cell(9)]
    assert store.finished() == {a_cell(seed).key for seed in (0, 1, 2)}


def test_an_empty_store_has_nothing(store):
    assert store.finished() == set()
    assert read(store, [a_cell()]) == []
    assert missing(store, [a_cell()]) == [a_cell()]


def test_leftovers_of_killed_writers_are_ignored_and_deleted(store):
    keep(FolderStore(store.folder), a_result(a_cell()))
    left, at_work = (store.parts / f".{name}.parquet.99.0123456789abcdef.part" for name in ("0123", "4567"))
    with at_work.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        left.write_bytes(b"PAR1")
        assert store.finished() == {a_cell().key}
        keep(store, a_result(a_cell()))
        assert not left.exists()
        assert at_work.exists()
    assert store.finished() == {a_cell().key}


def _truncate(path):
    path.write_bytes(path.read_bytes()[:-100])


def _another_table(path):
    pq.write_table(pa.table({"regret": [1.0]}), path)


def _sealed_again(path, **metadata):
    """A part whose seal holds, with other metadata."""
    table = pq.read_table(path)
    changed = {f"driftbandits.{name}".encode(): text for name, text in (metadata | {"seal": BLANK_SEAL}).items()}
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, **changed}), sink)
    path.write_bytes(sealed(bytes(sink.getvalue())))


def _without_seal(path):
    table = pq.read_table(path)
    kept = {key: value for key, value in table.schema.metadata.items() if key != b"driftbandits.seal"}
    pq.write_table(table.replace_schema_metadata({**kept, b"driftbandits.schema": b"1"}), path)


def _another_cell(path):
    other = FolderStore(path.parent / "other")
    keep(other, a_result(a_cell(seed=1)))
    path.write_bytes(other.path(a_cell(seed=1).key).read_bytes())


def _a_number_changed(path):
    whole = path.read_bytes()
    place = whole.index(np.float64(1 / 3).tobytes()[2:])  # the compression may have taken its beginning
    path.write_bytes(whole[:place] + b"\x00" + whole[place + 1 :])


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (_truncate, "it is damaged"),
        (_a_number_changed, "it is damaged"),
        (_another_table, "or of schema version 1, which had no seal"),
        (_without_seal, "or of schema version 1, which had no seal"),
        (
            lambda path: _sealed_again(path, schema="99"),
            "its schema version is 99, this version of the library reads 2",
        ),
        (_another_cell, "it belongs to another cell"),
        (lambda path: path.write_bytes(sealed(b"a zip, say" + BLANK_SEAL.encode())), "it is a file of another kind"),
        (lambda path: path.write_bytes(b""), "it is damaged"),
        (lambda path: path.write_text("not Parquet, but long enough to be taken for it"), "it is damaged"),
        (lambda path: (path.unlink(), path.mkdir()), "it cannot be read: Is a directory"),
    ],
)
def test_a_damaged_part_counts_as_not_played_and_is_named(store, damage, cause):
    for seed in (0, 1):
        keep(store, a_result(a_cell(seed)))
    path = store.path(a_cell().key)
    damage(path)
    assert store.finished() == {a_cell(1).key}
    assert missing(store, [a_cell(0), a_cell(1)]) == [a_cell(0)]
    with pytest.warns(DamagedPartWarning) as caught:
        (kept,) = read(store, [a_cell(0), a_cell(1)])
    assert kept.cell == a_cell(1)
    (warning,) = caught
    assert str(warning.message).startswith(f"{path} is no finished run (")
    assert cause in str(warning.message)


def test_writing_over_a_damaged_part_mends_it(store):
    keep(store, a_result(a_cell()))
    store.path(a_cell().key).write_bytes(b"")
    keep(store, a_result(a_cell()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read(store, [a_cell()])) == 1


def test_every_flipped_bit_is_found(store):
    cell = a_cell()
    keep(store, a_result(cell))
    path = store.path(cell.key)
    whole = path.read_bytes()
    found = []
    bits = np.random.default_rng(0).choice(8 * len(whole), size=1_000, replace=False)
    for bit in bits:
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        assert store.load({cell.key: cell}, on_damage=found.append) == {}
    assert len(found) == 1_000


def test_many_damaged_parts_are_told_of_together():
    assert damage_summary(["a is bad", "b is bad"]) == "a is bad; b is bad"
    assert damage_summary([f"{n} is bad" for n in range(100)]).endswith("4 is bad; and 95 more")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_one_clear_message(store, monkeypatch, number):
    keep(store, a_result(a_cell(0)))

    def full(path, content, **options):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(store_module, "write_whole", full)
    with pytest.raises(InputError, match=r"1 cells are finished and safe there: make room, then play the same again"):
        keep(store, a_result(a_cell(1)))
    assert [path.name for path in store.parts.iterdir()] == [store.path(a_cell(0).key).name]


def test_a_file_size_limit_of_the_system_leaves_the_store_whole(store):
    keep(store, a_result(a_cell(0)))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(StoreError, match="File too large"):
            keep(store, a_result(a_cell(1)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(read(store, [a_cell(0), a_cell(1)])) == 1
    assert len(list(store.parts.iterdir())) == 1


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "cells").write_text("in the way")
    with pytest.raises(StoreError, match="put that right"):
        keep(FolderStore(tmp_path), a_result(a_cell()))
    with pytest.raises(StoreError, match="cannot list"):
        FolderStore(tmp_path).finished()


def test_writing_again_replaces_the_part_whole(store):
    keep(store, a_result(a_cell()))
    keep(store, dataclasses.replace(a_result(a_cell()), seconds=9.0))
    assert read(store, [a_cell()])[0].seconds == 9.0
    assert len(list(store.parts.iterdir())) == 1
