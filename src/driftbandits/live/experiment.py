"""An experiment as a program uses it: `decide`, `reward`, and what can be read; from any number of threads, or awaited.

Every operation is defined once, in `Operations`, as a coroutine: it checks its arguments, has it performed in plain
values, and returns what the caller gets. `AsyncExperiment` performs operations in this process without
blocking the event loop. `Experiment` drives the same coroutines with a `_perform` that blocks, so that they never
suspend. The classes in `client` do both over HTTP.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from driftbandits.arms.arm_set import ArmSet
from driftbandits.arms.contexts import is_missing, rows_of
from driftbandits.errors import InputError
from driftbandits.live.decision_audit import DecisionRecord, audit_in_subprocess
from driftbandits.live.definition import read_options
from driftbandits.live.export import export_log
from driftbandits.live.replica import Replica
from driftbandits.live.requests import (
    MOST_PER_CALL,
    LiveDecision,
    Rejected,
    Request,
    RewardAnswer,
    ahead_in_words,
    check_key,
)
from driftbandits.live.summary import ExperimentSummary, summarise
from driftbandits.live.views import View
from driftbandits.live.writer import Batch, Writer
from driftbandits.text import shown
from driftbandits.types import Change

Asked = str | LiveDecision  # a decision stands for its id
Rewards = Mapping[str, float] | Iterable[tuple[Asked, float]]
Names = str | Iterable[str] | None
P = ParamSpec("P")
R = TypeVar("R")


class Operations:
    """The operations of an experiment, wherever they are performed."""

    async def _perform(self, kind: str, values: dict[str, Any], key: str | None = None) -> Any:
        raise NotImplementedError

    def _knows(self, given: Any) -> bool:
        """Whether the experiment made the decision of this id; a client may have made it on its own."""
        del given
        return True

    async def decide(
        self,
        size: int | None = None,
        *,
        allowed: Iterable[str] | None = None,
        segment: str | None = None,
        context: Any = None,
        contexts: Any = None,
        key: str | None = None,
    ) -> LiveDecision | list[LiveDecision]:
        """Decide once, or several times: which arm to play.

        Parameters
        ----------
        size : None for one decision, or how many, at most 1,000
        allowed : names of the arms that may be chosen this time; all that are not retired by default
        segment : the kind of request, where the experiment has segments
        context : of the request, where the experiment has contexts
        contexts : those of several requests, in the place of a size: a list, a DataFrame, columns by name, or an array
        key : an idempotency key, a text of yours

        Returns
        -------
        LiveDecision, or a list of them where a size or contexts were given

        Raises
        ------
        InputError
            For arms or a segment that the experiment does not have, where none is allowed, for another size, and for
            a context with other columns or values than the experiment's.
        """
        values: dict[str, Any] = {"allowed": allowed_names(allowed), "segment": segment}
        if context is None and contexts is None:
            values["size"] = 1 if size is None else size
        else:
            values["contexts"] = plain_contexts(size, context, contexts)
        made = await self._perform("decide", values, key)
        decisions = [LiveDecision(one["id"], one["arm"], one["probability"], one["fallback"]) for one in made]
        return decisions[0] if size is None and contexts is None else decisions

    async def reward(self, id: Asked, reward: float, *, key: str | None = None) -> RewardAnswer:  # noqa: A002
        """Send the reward of a decision.

        Parameters
        ----------
        id : the decision, or its id
        reward : within the experiment's range
        key : an idempotency key

        Returns
        -------
        RewardAnswer
            Sent again with the same value it is `repeated`; after its time, `late`.

        Raises
        ------
        UnknownDecisionError
            For an id that no decision has.
        ConflictError
            If the decision has another reward already.
        RewardError
            For a reward that is no finite number, or outside the range.
        """
        if not self._knows(id_of(id)):
            return RewardAnswer()
        return _reward_answer(await self._perform("reward", {"id": id_of(id), "reward": reward}, key))

    async def rewards(self, rewards: Rewards, *, key: str | None = None) -> RewardAnswer:
        """Send several rewards. Valid ones are taken, whatever is wrong with the others.

        Parameters
        ----------
        rewards : a mapping of ids to rewards, or pairs of both, at most 1,000
        key : an idempotency key

        Returns
        -------
        RewardAnswer
            Those that were not taken are among `rejected`, with the reason.

        Raises
        ------
        InputError
            For anything but pairs, and for too many.
        """
        try:
            pairs = [list(pair) for pair in (rewards.items() if isinstance(rewards, Mapping) else rewards)]
        except TypeError:
            pairs = [[]]
        if not all(len(pair) == 2 for pair in pairs) or len(pairs) > MOST_PER_CALL:
            raise InputError(f"rewards must be at most {MOST_PER_CALL:,} pairs (id, reward), got {shown(rewards)}")
        given = [[id_of(one), reward] for one, reward in pairs if self._knows(id_of(one))]
        return _reward_answer(await self._perform("rewards", {"rewards": given}, key))

    async def forget(self, ids: Asked | Iterable[Asked], *, key: str | None = None) -> int:
        """Close decisions whose rewards will never come.

        Parameters
        ----------
        ids : a decision or its id, or several
        key : an idempotency key

        Returns
        -------
        int
            How many were open, and are forgotten now.

        Raises
        ------
        UnknownDecisionError
            For an id that no decision has.
        """
        listed = [one for one in _listed("ids", ids) if self._knows(one)]
        answer = await self._perform("forget", {"ids": listed}, key)
        return int(answer["forgotten"])

    async def arms(
        self, *, add: Any = None, retire: Names = (), bring_back: Names = (), key: str | None = None
    ) -> dict[str, Any]:
        """Add arms, retire some, bring retired ones back. What is known of the others stays.

        Parameters
        ----------
        add : new arms, given as to `Database.create`
        retire : names of arms that are not to be played any more
        bring_back : names of retired arms that are to be played again
        key : an idempotency key

        Returns
        -------
        dict
            Names of arms: those `active` and those `retired` now.

        Raises
        ------
        InputError
            For names that are unknown or taken, features of another kind, and where no arm would be left.
        """
        one = isinstance(add, str) or (isinstance(add, Mapping) and "name" in add)
        values = {
            "add": option_values("arms", [add] if one else add),
            "retire": _listed("retire", retire),
            "bring_back": _listed("bring_back", bring_back),
        }
        answer: dict[str, Any] = await self._perform("arms", values, key)
        return answer

    async def pause(self, *, key: str | None = None) -> None:
        """Let the fallback answer; rewards are still learned.

        Parameters
        ----------
        key : an idempotency key
        """
        await self._perform("pause", {}, key)

    async def resume(self, *, key: str | None = None) -> None:
        """Let the policy answer again.

        Parameters
        ----------
        key : an idempotency key
        """
        await self._perform("resume", {}, key)

    async def restart(self, *, key: str | None = None) -> None:
        """Start again with the same settings and nothing learned; rewards of older decisions are stored, not learned.

        Parameters
        ----------
        key : an idempotency key
        """
        await self._perform("restart", {}, key)

    async def summary(self) -> ExperimentSummary:
        """A summary of the experiment; print it, or read its fields.

        Returns
        -------
        ExperimentSummary
        """
        found: ExperimentSummary = await self._perform("summary", {})
        return found

    async def changes(self) -> tuple[Change, ...]:
        """The changes that the policy has found since its last restart.

        Returns
        -------
        tuple of Change
        """
        found: tuple[Change, ...] = await self._perform("changes", {})
        return found

    async def history(self) -> Any:
        """Estimates and probabilities over time, as the policy records them.

        Returns
        -------
        History, or None while the fallback decides
        """
        return await self._perform("history", {})

    async def events(self, after: int = 0, limit: int = 1000) -> list[dict[str, Any]]:
        """Rows of the journal, as plain values.

        Parameters
        ----------
        after : number of the event after which to start
        limit : how many at most

        Returns
        -------
        list of dict
        """
        found: list[dict[str, Any]] = await self._perform("events", {"after": after, "limit": limit})
        return found

    async def decision(self, id: Asked) -> DecisionRecord:  # noqa: A002
        """Audit a decision: law, estimates and intervals at that time, found by a replay in a process of its own.

        Parameters
        ----------
        id : the decision, or its id

        Returns
        -------
        DecisionRecord

        Raises
        ------
        UnknownDecisionError
            For an id that no decision has.
        GoneError
            If retention has deleted it, or what the replay needs.
        LiveError
            While another audit is under way, and for one that takes too long.
        """
        found: DecisionRecord = await self._perform("decision", {"given": id_of(id)})
        return found

    async def export(self, path: str | Path) -> int:
        """Write the log of all decisions to a Parquet file, whole or not at all.

        Parameters
        ----------
        path : of the file; it ends in .parquet

        Returns
        -------
        int
            How many rows it has.

        Raises
        ------
        InputError
            For another ending.
        LiveError
            If the file cannot be written.
        MissingExtraError
            Without pyarrow.
        """
        found: int = await self._perform("export", {"path": path})
        return found


def id_of(given: Any) -> Any:
    """The id of a decision, or an id as it is."""
    return given.id if isinstance(given, LiveDecision) else given


def allowed_names(given: Iterable[str] | None) -> list[str] | None:
    """Names of arms as a list; a single text is refused, because it would be split into letters."""
    if isinstance(given, str):
        raise InputError(f"allowed must be a list of names of arms, got {shown(given)}; use [{shown(given)}]")
    return None if given is None else list(given)


def plain_contexts(size: Any, context: Any, contexts: Any) -> list[Any]:
    """One context per decision, of Python's own numbers, texts and lists."""
    if size is not None or (context is not None and contexts is not None):
        raise InputError("pass context for one decision, or contexts for several, in the place of a size")
    return [_plain(one) for one in ([context] if contexts is None else rows_of(contexts))]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, (str, bool, int, float)):
        return value
    return None if is_missing(value) else float(value) if hasattr(value, "__float__") else value


def option_values(what: str, given: Any) -> list[dict[str, Any]]:
    """Arms, or segments, as plain values; none for None or nothing."""
    if given is None or (not isinstance(given, ArmSet) and not given):
        return []
    return [{"name": option.name, "features": list(option.features)} for option in read_options(what, given)]


def _listed(what: str, given: Any) -> list[Any]:
    """One text, several or None as a list."""
    if given is None:
        return []
    if isinstance(given, str | LiveDecision):
        return [id_of(given)]
    if not isinstance(given, Iterable):
        raise InputError(f"{what} must be a text or a list of them, got {shown(given)}")
    return [id_of(each) for each in given]


def _reward_answer(answer: Mapping[str, Any]) -> RewardAnswer:
    rejected = tuple(Rejected(one["id"], one["reason"]) for one in answer["rejected"])
    return RewardAnswer(answer["accepted"], answer["repeated"], answer["late"], rejected)


# --- operations as methods that block -------------------------------------------------------------------------------


def synchronous(operation: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[Any, P], R]:
    """A method that performs the operation of this name, and returns its result."""
    name = operation.__name__

    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        coroutine: Coroutine[Any, Any, R] = getattr(self._operations, name)(*args, **kwargs)
        return finish(coroutine)

    _describe(call, operation)
    return call


def finish(coroutine: Coroutine[Any, Any, R]) -> R:
    """The result of a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    coroutine.close()
    raise RuntimeError("an operation that blocks has suspended")


def _describe(call: Any, operation: Callable[..., Any]) -> None:
    """Give a method the name, the docstring and the signature of an operation."""
    call.__name__, call.__qualname__, call.__doc__ = operation.__name__, operation.__qualname__, operation.__doc__
    call.__signature__ = inspect.signature(operation)


class Synchronous:
    """The operations as methods that block until they are done."""

    _operations: Operations

    @overload
    def decide(
        self,
        size: None = None,
        *,
        allowed: Iterable[str] | None = None,
        segment: str | None = None,
        context: Any = None,
        contexts: None = None,
        key: str | None = None,
    ) -> LiveDecision: ...
    @overload
    def decide(
        self, size: int, *, allowed: Iterable[str] | None = None, segment: str | None = None, key: str | None = None
    ) -> list[LiveDecision]: ...
    @overload
    def decide(
        self, size: None = None, *, contexts: Any, allowed: Iterable[str] | None = None, key: str | None = None
    ) -> list[LiveDecision]: ...
    def decide(self, *args: Any, **kwargs: Any) -> Any:
        """See `Operations.decide`."""
        return _decide(self, *args, **kwargs)

    reward = synchronous(Operations.reward)
    rewards = synchronous(Operations.rewards)
    forget = synchronous(Operations.forget)
    arms = synchronous(Operations.arms)
    pause = synchronous(Operations.pause)
    resume = synchronous(Operations.resume)
    restart = synchronous(Operations.restart)
    summary = synchronous(Operations.summary)
    changes = synchronous(Operations.changes)
    history = synchronous(Operations.history)
    events = synchronous(Operations.events)
    decision = synchronous(Operations.decision)
    export = synchronous(Operations.export)


_decide = synchronous(Operations.decide)
_describe(Synchronous.decide, Operations.decide)


# --- in this process ------------------------------------------------------------------------------------------------


def _summary(writer: Writer, replica: Replica) -> ExperimentSummary:
    health = []
    if writer.clock_ahead:
        health.append(ahead_in_words(writer.clock_ahead))
    if writer.clock_behind:
        health.append(f"the clock was {writer.clock_behind:.0f} s behind the newest event: was it set back?")
    recovery = writer.recovery
    if recovery is not None:
        health += recovery.problems
    way = "" if recovery is None else recovery.way
    return summarise(writer.name, replica, brought_back=way, health=tuple(health))


# What is asked of the replica in the writer's thread, between two transactions; and of the journal, in another.
_INSPECTIONS: dict[str, Callable[[Writer, Replica], Any]] = {
    "summary": _summary,
    "changes": lambda _, replica: () if replica.policy is None else replica.policy.changes,
    "history": lambda _, replica: None if replica.policy is None else replica.policy.history,
}
_READS: dict[str, Callable[..., Any]] = {"events": View.events, "decision": audit_in_subprocess, "export": export_log}


class AsyncExperiment(Operations):
    """An experiment for asyncio: the methods of `Experiment`, to be awaited. Nothing blocks the event loop.

    Parameters
    ----------
    experiment : that it asks; `Experiment.asynchronous` gives this object for it

    >>> import asyncio, tempfile
    >>> import driftbandits as db
    >>> async def play(shop):
    ...     choice = await shop.decide()
    ...     return await shop.reward(choice, 1.0)
    >>> with tempfile.TemporaryDirectory() as folder, db.live.open(f"sqlite:///{folder}/shop.db") as database:
    ...     asyncio.run(play(database.create("prices", arms=["9 EUR", "12 EUR"], seed=0).asynchronous)).accepted
    1
    """

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.name = experiment.name

    async def settings(self, /, *, key: str | None = None, **given: Any) -> dict[str, Any]:
        """Change the patience or the fallback.

        Parameters
        ----------
        key : an idempotency key
        given : `patience` (seconds) or `fallback` (an arm's name, or None), by name

        Returns
        -------
        dict
            The values from now on.

        Raises
        ------
        InputError
            For other settings, which cannot be changed, and for invalid values.
        """
        unknown = [name for name in given if name not in ("patience", "fallback")]
        if unknown:
            raise InputError(f"only patience and fallback can be changed, got {unknown[0]!r}; make another experiment")
        answer: dict[str, Any] = await self._perform("settings", given, key)
        return answer

    async def _perform(self, kind: str, values: dict[str, Any], key: str | None = None) -> Any:
        read = _READS.get(kind)
        if read is None:
            return await asyncio.wrap_future(self.experiment.submit(kind, values, key))
        return await asyncio.to_thread(read, self.experiment.view, **values)


class _Blocking(AsyncExperiment):
    """Performs operations in the caller's thread."""

    async def _perform(self, kind: str, values: dict[str, Any], key: str | None = None) -> Any:
        read = _READS.get(kind)
        if read is None:
            return self.experiment.submit(kind, values, key).result()
        return read(self.experiment.view, **values)


class Experiment(Synchronous):
    """One experiment, open for deciding. `Database.create` and `Database.experiment` give it.

    Every call returns once its effect is on disk: a crash, or kill -9, loses nothing that was answered. With a `key`
    a request can be sent again, after an error or a time-out, without being done twice: the same key and request get
    the answer that was stored.

    Calls that change something raise NotStoredError if the database did not store the change, KeyReusedError for a key
    that was used with another request, and LiveError where the experiment was closed or too many requests wait.

    Parameters
    ----------
    name : of the experiment
    writer : the thread that serves all requests
    view : reads the same experiment

    >>> import tempfile
    >>> import driftbandits as db
    >>> with tempfile.TemporaryDirectory() as folder, db.live.open(f"sqlite:///{folder}/shop.db") as database:
    ...     shop = database.create("prices", arms=["9 EUR", "12 EUR"], seed=0)
    ...     choice = shop.decide()
    ...     answer = shop.reward(choice, 1.0)
    ...     summary = shop.summary()
    >>> answer.accepted, summary.decisions, summary.policy
    (1, 1, 'AutoBandit')
    """

    settings = synchronous(AsyncExperiment.settings)

    def __init__(self, name: str, writer: Writer, view: View) -> None:
        self.name = name
        self._writer = writer
        self._view = view
        self._operations = _Blocking(self)

    def submit(
        self,
        kind: str,
        values: dict[str, Any],
        key: str | None = None,
        *,
        most: int | None = None,
        owner: str = "",
    ) -> Future[Any]:
        """Submit a request in plain values, as a service does.

        Parameters
        ----------
        kind : of request, such as "decide"
        values : the arguments of the method of that name
        key : an idempotency key
        most : how many open decisions, or arms, the experiment may have afterwards; None for any number
        owner : whose key it is, where several callers choose keys

        Returns
        -------
        Future
            Its result is of plain values too, once it is on disk.

        Raises
        ------
        InputError
            For a key that is no text, or too long.
        LiveError
            If the experiment was closed, or too many requests wait.
        """
        inspection = _INSPECTIONS.get(kind)
        if inspection is not None:
            kind, values = "inspect", {"inspect": inspection}
        return self._writer.submit(Request(kind, values, check_key(key), most, owner))

    def watch(self, on_batch: Callable[[Batch], None]) -> None:
        """Register a callback for every transaction.

        Parameters
        ----------
        on_batch : called in the writer's thread, so it must be fast
        """
        self._writer.on_batch = on_batch

    @property
    def failure(self) -> tuple[float, str] | None:
        """Seconds since the last transaction failed, and why; None if it was committed."""
        failed = self._writer.failure
        return None if failed is None else (time.monotonic() - failed[0], failed[1])

    @property
    def view(self) -> View:
        """The same experiment to be read."""
        return self._view

    @property
    def asynchronous(self) -> AsyncExperiment:
        """The same methods as coroutines."""
        return AsyncExperiment(self)

    def close(self) -> None:
        """Serve waiting requests and close; `Database.close` does so for all experiments."""
        self._writer.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed; `Database.experiment` opens it again."""
        return self._writer.closing

    def __repr__(self) -> str:
        return f"Experiment({self.name!r})"
