import contextlib
import importlib.util
import inspect
import operator
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest

from driftbandits.errors import InputError, MissingExtraError
from driftbandits.experiments import engines
from driftbandits.experiments.engines import Engine, EngineError, FuturesBackend


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "rays"}, "did you mean 'ray'"),
        ({"name": "spark"}, "known: loky, ray, dask"),
        ({"jobs": 0}, "use -1 for one per core"),
        ({"jobs": 1.5}, "got 1.5"),
        ({"jobs": True}, "got True"),
        ({"jobs": np.True_}, "got np.True_"),
        ({"jobs": "2"}, "got '2'"),
        ({"address": "tcp://here:1"}, "use ray or dask"),
    ],
)
def test_impossible_engines_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        Engine(**settings)


def test_an_engine_is_a_value():
    assert pickle.loads(pickle.dumps(Engine("dask", jobs=3))) == Engine("dask", jobs=3)  # noqa: S301
    assert Engine(jobs=3).local_jobs == 3
    assert Engine(jobs=-1).local_jobs == joblib.cpu_count()
    assert Engine(jobs=-1000).local_jobs == 1
    assert Engine(jobs=np.int64(3)) == Engine(jobs=3)
    assert type(Engine(jobs=np.int64(3)).jobs) is int


@pytest.mark.parametrize(
    ("jobs", "cells", "workers"), [(10, 2, 2), (2, 10, 2), (10**9, 3, 3), (3, None, 3), (-1, 1, 1)]
)
def test_no_more_workers_are_started_than_there_are_cells(jobs, cells, workers, monkeypatch):
    told = []

    def start(engine, workers):
        told.append(workers)
        return contextlib.nullcontext()

    for name in engines.ENGINES:
        monkeypatch.setitem(engines._START, name, start)
        with Engine(name, jobs=jobs).started(cells=cells):
            pass
    assert told == [workers] * 3


@pytest.mark.parametrize("name", ["ray", "dask"])
def test_a_missing_package_names_the_extra(name, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: None)
    with pytest.raises(MissingExtraError, match=rf"'\.\[{name}\]'"), Engine(name).started():
        pass


def test_an_address_without_a_cluster_is_one_clear_message(monkeypatch):
    monkeypatch.setattr(engines, "CONNECT_SECONDS", 0.5)
    message = r"cannot reach dask at 'tcp://127.0.0.1:9'.*check the address"
    with pytest.raises(EngineError, match=message), Engine("dask", address="tcp://127.0.0.1:9").started():
        pass


@pytest.mark.parametrize(
    ("engine", "sent"),
    [
        (Engine(jobs=4), "2 * n_jobs"),
        (Engine("ray"), "all"),
        (Engine("dask", address="tcp://host:8786"), "all"),
        (Engine("dask", jobs=5, address="tcp://host:8786"), 5),
    ],
)
def test_a_shared_cluster_gets_no_more_cells_at_a_time_than_jobs(engine, sent):
    assert engine._pre_dispatch == sent


def test_a_started_engine_is_found_running(monkeypatch):
    starts = []
    start = engines._START["loky"]
    monkeypatch.setitem(engines._START, "loky", lambda engine, workers: starts.append(engine) or start(engine, workers))
    with Engine(jobs=1).started():
        with Engine(jobs=1).started():
            pass
        with Engine(jobs=1).started():
            assert starts == [Engine(jobs=1)]
    with Engine(jobs=1).started():
        assert len(starts) == 2


def test_joblib_is_used_by_its_public_names():
    assert "joblib._" not in inspect.getsource(engines)


def test_nothing_inside_a_cell_runs_in_parallel():
    backend, jobs = FuturesBackend(lambda call: None, lambda future: None).get_nested_backend()
    assert (type(backend).__name__, jobs) == ("SequentialBackend", None)


def test_a_worker_whose_parent_is_gone_ends_before_its_first_cell():
    script = "import os; from driftbandits.experiments.engines import begin_worker; begin_worker(os.getpid())"
    assert subprocess.run([sys.executable, "-c", f"{script}; os._exit(0)"], timeout=300).returncode == 1


def test_the_backend_over_futures_gives_results_and_errors():
    with ThreadPoolExecutor(2) as pool:
        backend = FuturesBackend(pool.submit, lambda future: future.cancel())
        with joblib.parallel_config(backend):
            assert sorted(Engine().parallel(joblib.delayed(operator.neg)(i) for i in range(20))) == list(range(-19, 1))
            with pytest.raises(ZeroDivisionError):
                list(Engine().parallel(joblib.delayed(operator.truediv)(1, i) for i in (1, 1, 0, 1)))
