import dataclasses
import warnings

import pytest

from driftbandits.errors import DriftbanditsError
from driftbandits.experiments import engines, runner
from driftbandits.experiments.building import cost_of
from driftbandits.experiments.engines import Engine
from driftbandits.experiments.folder_store import FolderStore
from driftbandits.experiments.runner import CellError, run_cell, run_cells
from driftbandits.experiments.specs import Cell, PolicySpec
from driftbandits.experiments.stores import DamagedPartWarning, read
from tests.experiments.odd_policy import odd_cells, plays, same, tell

ONE = Engine(jobs=1)
SMALL = [
    Cell("switching/1", {"horizon": 300, "switches": [150], "size": 10}, PolicySpec(name, name), seed)
    for seed in range(3)
    for name in ("OPKB", "AdaOPKB", "Uniform")
]


@pytest.fixture(scope="module")
def bare():
    return [run_cell(cell) for cell in SMALL]


# Ray and Dask leave sockets and files to the garbage collector, which says so.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("engine", [ONE, Engine(jobs=2), Engine("ray", jobs=2), Engine("dask", jobs=2)], ids=str)
def test_every_engine_gives_the_same(engine, bare, tmp_path):
    kept = FolderStore(tmp_path)
    assert same(run_cells(SMALL, engine=engine, store=kept), bare)
    assert same(read(kept, SMALL), bare)


def test_resuming_plays_only_what_is_missing(tmp_path):
    cells, store, counts = odd_cells(tmp_path), FolderStore(tmp_path), []
    first = run_cells(cells[2:5], store=store, engine=ONE)
    results = run_cells(cells, store=store, engine=ONE, progress=lambda cells: counts.append(len(cells)))
    assert plays(tmp_path) == dict.fromkeys(range(8), 1)
    assert counts == [3, 1, 1, 1, 1, 1]
    assert same(results[2:5], first)
    assert [result.cell for result in results] == cells
    assert same(run_cells(cells, store=store, engine=ONE), results)
    assert plays(tmp_path) == dict.fromkeys(range(8), 1)


def test_nothing_to_play_starts_no_engine(tmp_path, monkeypatch):
    run_cells(SMALL[:2], store=FolderStore(tmp_path), engine=ONE)
    monkeypatch.setattr(Engine, "started", None)
    assert len(run_cells(SMALL[:2], store=FolderStore(tmp_path), engine=Engine("ray"))) == 2
    assert run_cells([], engine=Engine("dask")) == []


def test_workers_are_no_more_than_cells_to_be_played(tmp_path, monkeypatch):
    started = []
    start = engines._START["loky"]
    monkeypatch.setitem(engines._START, "loky", lambda engine, workers: started.append(workers) or start(engine, 1))
    store = FolderStore(tmp_path)
    run_cells(SMALL[:2], store=store, engine=Engine(jobs=10))
    run_cells(SMALL[:5], store=store, engine=Engine(jobs=10))  # two are there
    assert started == [2, 3]


def test_equal_cells_are_played_once_and_named_apart(tmp_path):
    cell = odd_cells(tmp_path)[0]
    other = dataclasses.replace(cell, policy=dataclasses.replace(cell.policy, label="other"))
    counts = []
    results = run_cells([cell, other, cell], engine=ONE, progress=lambda cells: counts.append(len(cells)))
    assert [result.cell.policy.label for result in results] == ["odd", "other", "odd"]
    assert plays(tmp_path) == {0: 1}
    assert counts == [3]


def test_a_failing_cell_is_named_and_finished_ones_stay(tmp_path):
    cells, store = odd_cells(tmp_path), FolderStore(tmp_path)
    tell(tmp_path, "fail", 5)
    with pytest.raises(CellError) as caught:
        run_cells(cells, store=store, engine=ONE)
    message = str(caught.value)
    assert message.startswith("odd on switching/1, seed 5 failed: OddError: odd at seed 5 (odd.py, line ")
    assert message.endswith(f"5 of 8 cells are finished and safe in {tmp_path}: play the same again to go on from them")
    assert "in __init__" in caught.value.details
    assert [result.cell.seed for result in read(store, cells)] == [0, 1, 2, 3, 4]
    tell(tmp_path, "fail")
    assert len(run_cells(cells, store=store, engine=ONE)) == 8
    assert plays(tmp_path)[0] == 1


@pytest.mark.parametrize(
    ("oddity", "said"),
    [
        ("fail", r"seed 5 failed: OddError: odd at seed 5 \(odd.py, line .*not kept"),
        ("interrupt", r"seed 5 failed: KeyboardInterrupt:  \(odd.py, line"),
    ],
)
def test_a_cell_that_fails_in_another_process_is_named_too(tmp_path, oddity, said):
    cells = odd_cells(tmp_path)
    tell(tmp_path, oddity, 5)
    with pytest.raises(CellError, match=said):
        run_cells(cells, engine=Engine(jobs=2))


def test_a_class_that_ends_the_program_ends_its_cell(tmp_path):
    cells, store = odd_cells(tmp_path), FolderStore(tmp_path)
    tell(tmp_path, "exit", 5)
    said = r"^odd on switching/1, seed 5 failed: SystemExit: 0 \(odd.py, line .*play the same again"
    with pytest.raises(CellError, match=said):
        run_cells(cells, store=store, engine=ONE)
    assert 5 not in [result.cell.seed for result in read(store, cells)]


def test_an_error_of_ours_needs_no_place(tmp_path):
    wrong = dataclasses.replace(SMALL[0], policy=PolicySpec("mine", "OPKP"))
    with pytest.raises(DriftbanditsError, match=r"^mine on switching/1, seed 0 failed: no policy is called 'OPKP'"):
        run_cells([wrong], engine=ONE)


@pytest.mark.parametrize("jobs", [1, 2])
def test_warnings_of_cells_are_issued_once(tmp_path, jobs):
    cells = odd_cells(tmp_path, 6)
    tell(tmp_path, "warn", *range(6))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run_cells(cells, engine=Engine(jobs=jobs))
    (warning,) = (w for w in caught if "odd" in str(w.message))
    assert warning.category is RuntimeWarning  # this process does not know the file's own category
    assert "odd for the 0. time (odd on switching/1, seed" in str(warning.message)
    assert warning.filename == str(tmp_path / "odd.py")


def test_a_class_edited_during_the_run_is_noticed(tmp_path, monkeypatch):
    cells = odd_cells(tmp_path)

    def edited(cell):
        result = run_cell(cell)
        with (tmp_path / "odd.py").open("a") as file:
            file.write("\n# edited\n")
        return result

    monkeypatch.setattr(runner, "run_cell", edited)
    with pytest.raises(CellError, match="is not what the run began with"):
        run_cells(cells, store=FolderStore(tmp_path), engine=ONE)
    assert FolderStore(tmp_path).finished() == set()


def test_damaged_parts_are_played_again(tmp_path):
    cells, store = odd_cells(tmp_path), FolderStore(tmp_path)
    first = run_cells(cells, store=store, engine=ONE)
    path = store.path(cells[3].key)
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    with pytest.warns(DamagedPartWarning, match=rf"{path} is no finished run \(it is damaged\): its cell is played"):
        again = run_cells(cells, store=store, engine=ONE)
    assert plays(tmp_path) == {**dict.fromkeys(range(8), 1), 3: 2}
    assert same(again, first)
    assert same(read(store, cells), first)


def test_a_part_that_stays_damaged_is_found_again(tmp_path):
    cells, store = odd_cells(tmp_path), FolderStore(tmp_path)
    run_cells(cells[:2], store=store, engine=ONE)
    for cell in cells[:2]:
        store.path(cell.key).write_bytes(b"")
    tell(tmp_path, "fail", 0)  # before anything is mended
    for _ in range(2):
        with pytest.warns(DamagedPartWarning, match="their cells are played again"), pytest.raises(CellError):
            run_cells(cells, store=store, engine=ONE)
    assert store.finished() == set()


MANY = """
import driftbandits as db
class Nervous(db.Uniform):
    def _steady(self):
        return 1
    def _learn_one(self, row, reward):
        self._report_change(epoch=0, interval=(0, 1), statistic=0.0, threshold=0.0)
"""


def test_every_change_is_counted_however_many(tmp_path):
    (tmp_path / "many.py").write_text(MANY)
    spec = PolicySpec("nervous", f"{tmp_path / 'many.py'}:Nervous")
    result = run_cell(Cell("switching/1", {"horizon": 10_500, "switches": [100], "size": 3}, spec, 0))
    assert len(result.changes) == 10_500
    assert result.changes[:2] == (1, 2)
    assert result.detection.delays == (1,)
    assert result.detection.false_alarms == 10_499


def test_the_longest_are_sent_first():
    def a_cell(name, **settings):
        return Cell("switching/1", {}, PolicySpec(name, name, settings), 0)

    cells = [a_cell("OPKB"), a_cell("OPNN", train=False), a_cell("AdaOPNN"), a_cell("mine.py:Own"), a_cell("NeuralUCB")]
    infinite = a_cell("AdaOPNN", width="infinite")
    sent = [args[1] for _, args, _ in runner._tasks(dict(enumerate([*cells, infinite])))]
    assert [cell.policy.name for cell in sent[:2]] == ["AdaOPNN", "NeuralUCB"]
    costs = [cost_of(cell) for cell in sent]
    assert costs == sorted(costs, reverse=True)
    assert len(sent) == len(cells) + 1
