"""An experiment as a program uses it: `decide`, `reward`, and what can be looked at; from any number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from driftbandits.errors import InputError
from driftbandits.live.definition import read_options
from driftbandits.live.exporting import export_log
from driftbandits.live.handlers import MOST_PER_CALL
from driftbandits.live.looking import ExperimentSummary, summarise
from driftbandits.live.looking_back import DecisionRecord, look_back_apart
from driftbandits.live.player import Player
from driftbandits.live.requests import LiveDecision, Rejected, Request, RewardAnswer, check_key
from driftbandits.live.views import View
from driftbandits.live.writer import Batch, Writer
from driftbandits.showing import shown
from driftbandits.types import Change

if TYPE_CHECKING:
    from driftbandits.live.asynchronous import AsyncExperiment

Rewards = Mapping[str, float] | Iterable[tuple[str, float]]
Asked = str | LiveDecision  # a decision stands for its id
Names = str | Iterable[str] | None


class Experiment:
    """One experiment, open for deciding. `Database.create` and `Database.experiment` give it.

    Every call returns when what it did is on disk: a crash, or kill -9, loses nothing that was answered. With a `key`
    a request can be sent again, after an error or a time-out, without being done twice: the same key and request get
    the answer that was stored.

    Whatever changes something raises NotStoredError if the database did not store it, KeyReusedError for a key that
    came with another request before, and LiveError where the experiment was closed or too many requests wait.

    Parameters
    ----------
    name : of the experiment
    writer : the thread that serves all requests
    view : the same experiment to be looked at

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

    def __init__(self, name: str, writer: Writer, view: View) -> None:
        self.name = name
        self._writer = writer
        self._view = view

    # --- deciding and rewards -----------------------------------------------------------------------------------

    @overload
    def decide(
        self,
        size: None = None,
        *,
        allowed: Iterable[str] | None = None,
        segment: str | None = None,
        key: str | None = None,
    ) -> LiveDecision: ...
    @overload
    def decide(
        self, size: int, *, allowed: Iterable[str] | None = None, segment: str | None = None, key: str | None = None
    ) -> list[LiveDecision]: ...
    def decide(
        self,
        size: int | None = None,
        *,
        allowed: Iterable[str] | None = None,
        segment: str | None = None,
        key: str | None = None,
    ) -> LiveDecision | list[LiveDecision]:
        """Decide once, or several times: which arm to play.

        Parameters
        ----------
        size : None for one decision, or how many, at most 1,000
        allowed : names of the arms that may be chosen this time; all that are not retired by default
        segment : the kind of request, where the experiment has segments
        key : an idempotency key, a text of yours

        Returns
        -------
        LiveDecision, or a list of them where a size was given

        Raises
        ------
        InputError
            For arms or a segment that the experiment does not have, where none is allowed, and for another size.
        """
        return self._decide(size, allowed, segment, key).result()  # type: ignore[no-any-return]

    def _decide(self, size: Any, allowed: Any, segment: Any, key: Any) -> Future[Any]:
        names = None if allowed is None or isinstance(allowed, str) else list(allowed)
        values = {"size": 1 if size is None else size, "allowed": names if names is not None else allowed}
        answer = self._submit("decide", {**values, "segment": segment}, key)
        return _then(answer, lambda made: _decision(made[0]) if size is None else [_decision(item) for item in made])

    def reward(self, id: Asked, reward: float, *, key: str | None = None) -> RewardAnswer:  # noqa: A002
        """Tell the reward of a decision.

        Parameters
        ----------
        id : the decision, or its id
        reward : within the experiment's range
        key : an idempotency key

        Returns
        -------
        RewardAnswer
            Told again with the same value it is `repeated`; after its time, `late`.

        Raises
        ------
        UnknownDecisionError
            For an id that no decision has.
        ConflictError
            For another value than the one that was told.
        RewardError
            For a reward that is no finite number, or outside the range.
        """
        return self._reward(id, reward, key).result()  # type: ignore[no-any-return]

    def _reward(self, given: Any, reward: Any, key: Any) -> Future[Any]:
        return _then(self._submit("reward", {"id": _text(given), "reward": reward}, key), _reward_answer)

    def rewards(self, rewards: Rewards, *, key: str | None = None) -> RewardAnswer:
        """Tell several rewards. Those in order are taken, whatever is wrong with the others.

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
        return self._rewards(rewards, key).result()  # type: ignore[no-any-return]

    def _rewards(self, rewards: Any, key: Any) -> Future[Any]:
        try:
            pairs = [list(pair) for pair in (rewards.items() if isinstance(rewards, Mapping) else rewards)]
        except TypeError:
            pairs = [[]]
        if not all(len(pair) == 2 for pair in pairs) or len(pairs) > MOST_PER_CALL:
            raise InputError(f"rewards must be at most {MOST_PER_CALL:,} pairs (id, reward), got {shown(rewards)}")
        return _then(self._submit("rewards", {"rewards": pairs}, key), _reward_answer)

    def forget(self, ids: Asked | Iterable[Asked], *, key: str | None = None) -> int:
        """Say that the rewards of these decisions will never come.

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
        return self._forget(ids, key).result()  # type: ignore[no-any-return]

    def _forget(self, ids: Any, key: Any) -> Future[Any]:
        listed = _names("ids", ids)
        return _then(self._submit("forget", {"ids": listed}, key), lambda answer: answer["forgotten"])

    # --- steering -----------------------------------------------------------------------------------------------

    def arms(
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
        return self._arms(add, retire, bring_back, key).result()  # type: ignore[no-any-return]

    def _arms(self, add: Any, retire: Any, bring_back: Any, key: Any) -> Future[Any]:
        one = isinstance(add, str) or (isinstance(add, Mapping) and "name" in add)
        new = read_options("arms", [add] if one else add) if add else ()
        values = {
            "add": [{"name": option.name, "features": list(option.features)} for option in new],
            "retire": _names("retire", retire),
            "bring_back": _names("bring_back", bring_back),
        }
        return self._submit("arms", values, key)

    def pause(self, *, key: str | None = None) -> None:
        """Let the fallback answer; rewards are still learned.

        Parameters
        ----------
        key : an idempotency key
        """
        self._submit("pause", {}, key).result()

    def resume(self, *, key: str | None = None) -> None:
        """Let the policy answer again.

        Parameters
        ----------
        key : an idempotency key
        """
        self._submit("resume", {}, key).result()

    def restart(self, *, key: str | None = None) -> None:
        """Begin anew with the same settings and nothing learned; rewards of older decisions are kept, not learned.

        Parameters
        ----------
        key : an idempotency key
        """
        self._submit("restart", {}, key).result()

    def settings(self, *, key: str | None = None, **given: Any) -> dict[str, Any]:
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
            For other settings, which cannot be changed, and for values that are none.
        """
        unknown = [name for name in given if name not in ("patience", "fallback")]
        if unknown:
            raise InputError(f"only patience and fallback can be changed, got {unknown[0]!r}; make another experiment")
        return self._submit("settings", given, key).result()  # type: ignore[no-any-return]

    # --- looking ------------------------------------------------------------------------------------------------

    def summary(self) -> ExperimentSummary:
        """The experiment at a glance; print it, or read its fields.

        Returns
        -------
        ExperimentSummary
        """
        return self._look(self._summarise).result()  # type: ignore[no-any-return]

    def _summarise(self, writer: Writer, player: Player) -> ExperimentSummary:
        health = []
        if writer.clock_behind:
            health.append(f"the clock was {writer.clock_behind:.0f} s behind the newest event: was it set back?")
        recovery = writer.recovery
        if recovery is not None:
            health += recovery.problems
        way = "" if recovery is None else recovery.way
        return summarise(self.name, player, brought_back=way, health=tuple(health))

    def changes(self) -> tuple[Change, ...]:
        """The changes that the policy has found since its last restart.

        Returns
        -------
        tuple of Change
        """
        return self._look(lambda _, player: () if player.policy is None else player.policy.changes).result()  # type: ignore[no-any-return]

    def history(self) -> Any:
        """Estimates and probabilities over time, as the policy keeps them.

        Returns
        -------
        History, or None while the fallback decides
        """
        return self._look(lambda _, player: None if player.policy is None else player.policy.history).result()

    def events(self, after: int = 0, limit: int = 1000) -> list[dict[str, Any]]:
        """Rows of the journal, as plain values.

        Parameters
        ----------
        after : number of the event behind which they begin
        limit : how many at most

        Returns
        -------
        list of dict
        """
        return self._view.events(after, limit)

    def decision(self, id: Asked) -> DecisionRecord:  # noqa: A002
        """Look back at a decision: law, estimates and beliefs as they stood then, found by a replay in a process aside.

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
            While another look back is under way, and for one that takes too long.
        """
        return look_back_apart(self._view, _text(id))

    def export(self, path: str | Path) -> int:
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
        return export_log(self._view, path)

    def _look(self, look: Callable[[Writer, Player], Any]) -> Future[Any]:
        return self._submit("look", {"look": look}, None)

    # --- the rest -----------------------------------------------------------------------------------------------

    def submit(self, kind: str, values: dict[str, Any], key: str | None = None) -> Future[Any]:
        """Serve a request in plain values, as a service has it.

        Parameters
        ----------
        kind : what is asked for, such as "decide"
        values : the arguments of the method of that name
        key : an idempotency key

        Returns
        -------
        Future
            Its result is of plain values too, once it is on disk.
        """
        return self._submit(kind, values, key)

    def watch(self, on_batch: Callable[[Batch], None]) -> None:
        """Be told of every transaction.

        Parameters
        ----------
        on_batch : called in the writer's thread: be quick
        """
        self._writer.on_batch = on_batch

    @property
    def view(self) -> View:
        """The same experiment to be looked at."""
        return self._view

    @property
    def asynchronous(self) -> AsyncExperiment:
        """The same methods as coroutines."""
        from driftbandits.live.asynchronous import AsyncExperiment

        return AsyncExperiment(self)

    def close(self) -> None:
        """Serve what waits, and end; `Database.close` does it for all."""
        self._writer.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed; `Database.experiment` opens it again."""
        return self._writer.closing

    def _submit(self, kind: str, values: dict[str, Any], key: Any) -> Future[Any]:
        return self._writer.submit(Request(kind, values, check_key(key)))

    def __repr__(self) -> str:
        return f"Experiment({self.name!r})"


def _names(what: str, given: Any) -> list[Any]:
    if given is None or isinstance(given, (str, LiveDecision)):
        return [] if given is None else [_text(given)]
    if not isinstance(given, Iterable):
        raise InputError(f"{what} must be a text or a list of them, got {shown(given)}")
    return [_text(each) for each in given]


def _text(given: Any) -> Any:
    """A decision stands for its id."""
    return given.id if isinstance(given, LiveDecision) else given


def _decision(made: Mapping[str, Any]) -> LiveDecision:
    return LiveDecision(made["id"], made["arm"], made["probability"], made["fallback"])


def _reward_answer(answer: Mapping[str, Any]) -> RewardAnswer:
    rejected = tuple(Rejected(item["id"], item["reason"]) for item in answer["rejected"])
    return RewardAnswer(answer["accepted"], answer["repeated"], answer["late"], rejected)


def _then(future: Future[Any], change: Callable[[Any], Any]) -> Future[Any]:
    """A future of what `change` makes of an answer."""
    changed: Future[Any] = Future()

    def done(of: Future[Any]) -> None:
        if not changed.set_running_or_notify_cancel():  # nobody waits any more; it was done all the same
            return
        error = of.exception()
        if error is not None:
            changed.set_exception(error)
        else:
            changed.set_result(change(of.result()))

    future.add_done_callback(done)
    return changed
