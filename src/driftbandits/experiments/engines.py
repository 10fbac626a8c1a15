"""Where cells are played: processes of this machine (loky), a Ray cluster, or a Dask cluster, all behind joblib.

Joblib's stock backends for the clusters are replaced by one small backend over futures, for reasons measured with
joblib 1.6, Ray 2.60 and Dask 2026.8. Ray's (`register_ray`) deals tasks to its actors in turn, so short cells wait
behind a long one while another actor idles (3 s + 28 x 0.1 s on two actors took 5.1 s instead of 3), and it gives
results only when all are there. Dask's never calls back when a worker is killed, so joblib waits forever.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import importlib
import importlib.util
import logging
import operator
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, SupportsIndex

import joblib
from joblib.parallel import ParallelBackendBase

from driftbandits.errors import DriftbanditsError, InputError, MissingExtraError, did_you_mean
from driftbandits.text import first_line, shown

ENGINES = ("loky", "ray", "dask")
ENGINE_PACKAGES = {"ray": "ray", "dask": "distributed"}
CONNECT_SECONDS = 10
PARENT_CHECK_SECONDS = 0.5
# A cell has a few hundred bytes and a result a few thousand; Ray would set aside a third of the memory for objects.
RAY_OBJECT_STORE_BYTES = 80 * 2**20
# On a cluster a machine may be lost, and its cells are played elsewhere; three times is Dask's own rule. What kills a
# worker on this machine, mostly want of memory, would kill the next.
LOST_WORKER_RETRIES = 3
DASK_SETTINGS = {
    "distributed.scheduler.allowed-failures": 0,
    # A nanny starts its worker anew; the cluster would dismiss nannies whose worker is down for long, and wait forever.
    "distributed.deploy.lost-worker-timeout": "1000d",
}
# Ctrl-C reaches every process of a terminal; Dask's workers would each print a traceback, and are stopped anyway.
DEAF_TO_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
Call = Callable[[], Any]
Future = concurrent.futures.Future[Any]


class EngineError(DriftbanditsError):
    """An engine cannot be started or reached."""


@dataclass(frozen=True)
class Engine:
    """How cells are played. Results do not depend on any of it.

    Parameters
    ----------
    name : "loky" (processes on this machine), "ray" or "dask"
    jobs : number of workers; -1: one per core, -2: all cores but one. On a running cluster it is how many cells may be
        under way at a time, -1 as many as it has room for
    address : of a running Ray or Dask cluster ("auto", "ray://host:10001", "tcp://host:8786"); without it a cluster is
        started on this machine and shut down afterwards. On a running cluster a cell whose worker is lost is played
        again elsewhere, three times at most

    Raises
    ------
    InputError
        For an unknown engine, an impossible number of jobs, and an address for loky.

    >>> Engine("loky", jobs=2)
    Engine(name='loky', jobs=2, address=None)
    >>> Engine("rey")
    Traceback (most recent call last):
    ...
    driftbandits.errors.InputError: there is no engine 'rey'; did you mean 'ray'? known: loky, ray, dask
    """

    name: str = "loky"
    jobs: int = -1
    address: str | None = None

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            hint = did_you_mean(self.name, ENGINES)
            raise InputError(f"there is no engine {self.name!r}; {hint}known: {', '.join(ENGINES)}")
        object.__setattr__(self, "jobs", _check_jobs(self.jobs))
        if self.name == "loky" and self.address is not None:
            raise InputError(f"loky plays on this machine and has no address, got {self.address!r}; use ray or dask")

    @contextlib.contextmanager
    def started(self, *, cells: int | None = None) -> Iterator[None]:
        """Make this joblib's backend, and shut down afterwards what had to be started: no more workers than `cells`.

        Callers of `run_cells` keep this open around many calls, which then share the running engine:
        and a local Ray or Dask cluster, which takes seconds to start, is started once.

        Parameters
        ----------
        cells : how many there are to play; no more workers than that

        Yields
        ------
        None
        """
        if self in _RUNNING:
            yield
            return
        workers = self.local_jobs if cells is None else min(self.local_jobs, cells)
        with _START[self.name](self, workers):
            _RUNNING.append(self)
            try:
                yield
            finally:
                _RUNNING.remove(self)

    @property
    def parallel(self) -> joblib.Parallel:
        """Joblib's runner on the started engine, giving results as they come.

        Cells go one by one: joblib's own batches (`batch_size="auto"`) glue dozens of quick cells together, and then a
        cell of a minute among them holds back finished ones, which a kill would lose.
        """
        return joblib.Parallel(batch_size=1, pre_dispatch=self._pre_dispatch, return_as="generator_unordered")

    @property
    def local_jobs(self) -> int:
        """Number of workers on this machine."""
        return self.jobs if self.jobs > 0 else max(int(joblib.cpu_count()) + 1 + self.jobs, 1)

    @property
    def _pre_dispatch(self) -> int | str:
        """How many cells leave this process before the first result is back."""
        if self.name == "loky":
            return "2 * n_jobs"  # the next cell is there when a process is free, whichever it is
        if self.address is not None and self.jobs > 0:
            return self.jobs  # others use the cluster too
        return "all"  # its scheduler keeps the queue; an autoscaling cluster grows by its length


_RUNNING: list[Engine] = []


class FuturesBackend(ParallelBackendBase):  # type: ignore[misc]  # joblib has no types
    """A joblib backend over whatever makes a future of a call; the cluster's own scheduler finds the free worker."""

    supports_retrieve_callback = True

    def __init__(self, submit: Callable[[Call], Future], cancel: Callable[[Future], object]) -> None:
        # A cell plays in one process and one thread: below this level joblib lets nothing inside it run in parallel.
        super().__init__(nesting_level=1)
        self._submit = submit
        self._cancel = cancel
        self._under_way: set[Future] = set()

    def effective_n_jobs(self, n_jobs: int | None) -> int:  # noqa: ARG002
        """Not 1, which joblib takes for leave to play in this process; how many play at a time the cluster knows."""
        return 2

    def submit(self, func: Call, callback: Callable[[Future], None] | None = None) -> Future:
        """Send a call to the cluster."""
        future = self._submit(func)
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Future) -> Any:
        """What the call gave, or its error."""
        return out.result()

    def abort_everything(self, ensure_ready: bool = True) -> None:  # noqa: ARG002
        """Take back what is under way."""
        for future in list(self._under_way):
            self._cancel(future)


@contextlib.contextmanager
def _start_loky(engine: Engine, workers: int) -> Iterator[None]:  # noqa: ARG001  # as the others are called
    with joblib.parallel_config(
        "loky", n_jobs=workers, inner_max_num_threads=1, initializer=begin_worker, initargs=(os.getpid(),)
    ):
        yield


@contextlib.contextmanager
def _start_ray(engine: Engine, workers: int) -> Iterator[None]:
    _need(engine)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing leaves the machine unasked
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # what Ray will do in future, without its warning
    ray: Any = importlib.import_module("ray")
    ours = not ray.is_initialized()
    if ours:
        where: dict[str, Any] = {"address": engine.address}
        if engine.address is None:
            where = {
                "address": "local",
                "num_cpus": workers,
                "include_dashboard": False,
                "object_store_memory": RAY_OBJECT_STORE_BYTES,
            }
        with _reaching(engine):
            ray.init(**where, log_to_driver=False, logging_level=logging.CRITICAL)
    try:
        _warn_if_empty(engine, int(ray.cluster_resources().get("CPU", 0)))
        with joblib.parallel_config(_ray_backend(ray, retries=0 if engine.address is None else LOST_WORKER_RETRIES)):
            yield
    finally:
        if ours:
            ray.shutdown()


def _ray_backend(ray: Any, *, retries: int) -> FuturesBackend:
    """One Ray task per cell, on one core."""
    task = ray.remote(_call).options(num_cpus=1, max_retries=retries)
    references: dict[Future, Any] = {}

    def submit(call: Call) -> Future:
        reference = task.remote(call)
        future: Future = reference.future()
        references[future] = reference
        future.add_done_callback(lambda done: references.pop(done, None))
        return future

    def cancel(future: Future) -> None:
        if (reference := references.get(future)) is not None:
            ray.cancel(reference, force=True)

    return FuturesBackend(submit, cancel)


@contextlib.contextmanager
def _start_dask(engine: Engine, workers: int) -> Iterator[None]:
    _need(engine)
    distributed: Any = importlib.import_module("distributed")
    with contextlib.ExitStack() as stack:
        stack.enter_context(importlib.import_module("dask").config.set(DASK_SETTINGS))
        with _reaching(engine):
            cluster: Any = engine.address
            if cluster is None:
                cluster = stack.enter_context(
                    distributed.LocalCluster(
                        n_workers=workers,
                        threads_per_worker=1,
                        processes=True,
                        dashboard_address=None,
                        silence_logs=logging.CRITICAL,
                        preload=DEAF_TO_CTRL_C,
                    )
                )
            client = distributed.Client(cluster, timeout=CONNECT_SECONDS, set_as_default=False)
        stack.enter_context(client)
        _warn_if_empty(engine, sum(client.ncores().values()))
        executor = client.get_executor(pure=False)
        stack.enter_context(joblib.parallel_config(FuturesBackend(executor.submit, lambda future: future.cancel())))
        yield


_START: dict[str, Callable[[Engine, int], contextlib.AbstractContextManager[None]]] = {
    "loky": _start_loky,
    "ray": _start_ray,
    "dask": _start_dask,
}


def begin_worker(parent: int) -> None:
    """What a worker of loky does before its first cell: end when `parent` does, and leave Ctrl-C to it.

    A worker whose `parent` is killed would finish what was sent to it, and then wait for more for five minutes, beside
    those of the run that goes on and with the pipes of the killed one open; also one that was still starting.
    """
    # A terminal sends Ctrl-C to all: the parent ends the run and its workers. Not SIG_IGN, which a user's own
    # subprocesses would inherit.
    signal.signal(signal.SIGINT, lambda *_: None)
    if os.getppid() != parent:
        os._exit(1)
    end_with(parent)


@functools.cache
def end_with(parent: int) -> None:
    """Have this process, if it is a worker that `parent` started, end when `parent` is killed."""
    if os.getppid() == parent:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_SECONDS)
    os._exit(1)


def _check_jobs(jobs: SupportsIndex) -> int:
    try:
        number = operator.index(jobs)
    except TypeError:
        number = 0
    if isinstance(jobs, bool) or number == 0:
        raise InputError(f"jobs must be a whole number other than 0, got {shown(jobs)}; use -1 for one per core")
    return number


def _call(call: Call) -> Any:
    return call()


def _need(engine: Engine) -> None:
    package = ENGINE_PACKAGES[engine.name]
    if importlib.util.find_spec(package) is None:
        raise MissingExtraError(package, extra=engine.name, purpose=f"the engine {engine.name!r}")


def _warn_if_empty(engine: Engine, workers: int) -> None:
    if workers == 0:
        warnings.warn(f"{engine.name} at {engine.address!r} has no workers yet; cells wait for the first", stacklevel=2)


@contextlib.contextmanager
def _reaching(engine: Engine) -> Iterator[None]:
    """One message of ours for the many ways in which a cluster cannot be started or reached."""
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:  # timeouts and refused connections are OSErrors
        cause = first_line(error)
        if engine.address is None:
            raise EngineError(f"cannot start {engine.name} on this machine: {cause}") from error
        raise EngineError(
            f"cannot reach {engine.name} at {engine.address!r}: {cause}; check the address and that the cluster is up, "
            "or leave the address out to play on this machine"
        ) from error
