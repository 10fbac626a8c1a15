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
        """Decide once, or `size` times (at most 1,000): which arm to play.

        Parameters
        ----------
        allowed : names of the arms that may be chosen this time; all that are not retired by default
        segment : the kind of request, where the experiment has segments
        key : an idempotency key, a text of yours
        """
        return self._decide(size, allowed, segment, key).result()  # type: ignore[no-any-return]

    def _decide(self, size: Any, allowed: Any, segment: Any, key: Any) -> Future[Any]:
        names = None if allowed is None or isinstance(allowed, str) else list(allowed)
        values = {"size": 1 if size is None else size, "allowed": names if names is not None else allowed}
        answer = self._submit("decide", {**values, "segment": segment}, key)
        return _then(answer, lambda made: _decision(made[0]) if size is None else [_decision(item) for item in made])

    def reward(self, id: Asked, reward: float, *, key: str | None = None) -> RewardAnswer:  # noqa: A002
        """Tell the reward of a decision. Told again with the same value it is `repeated`; after its time, `late`.

        An unknown id is an UnknownDecisionError, another value for one that was told a ConflictError, a reward outside
        the range a RewardError.
        """
        return self._reward(id, reward, key).result()  # type: ignore[no-any-return]

    def _reward(self, given: Any, reward: Any, key: Any) -> Future[Any]:
        return _then(self._submit("reward", {"id": _text(given), "reward": reward}, key), _reward_answer)

    def rewards(self, rewards: Rewards, *, key: str | None = None) -> RewardAnswer:
        """Tell several rewards (at most 1,000): a mapping of ids to rewards, or pairs. Those in order are taken."""
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
        """Say that the rewards of these decisions will never come; how many these were."""
        return self._forget(ids, key).result()  # type: ignore[no-any-return]

    def _forget(self, ids: Any, key: Any) -> Future[Any]:
        listed = _names("ids", ids)
        return _then(self._submit("forget", {"ids": listed}, key), lambda answer: answer["forgotten"])

    # --- steering -----------------------------------------------------------------------------------------------

    def arms(
        self, *, add: Any = None, retire: Names = (), bring_back: Names = (), key: str | None = None
    ) -> dict[str, Any]:
        """Add arms, given as to `create`, retire some, bring retired ones back; which are active and retired then."""
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
        """Let the fallback answer; rewards are still learned."""
        self._submit("pause", {}, key).result()

    def resume(self, *, key: str | None = None) -> None:
        """Let the policy answer again."""
        self._submit("resume", {}, key).result()

    def restart(self, *, key: str | None = None) -> None:
        """Begin anew with the same settings and nothing learned; rewards of older decisions are kept, not learned."""
        self._submit("restart", {}, key).result()

    def settings(self, *, key: str | None = None, **given: Any) -> dict[str, Any]:
        """Change `patience` (seconds) or `fallback` (an arm's name, or None); the present values."""
        unknown = [name for name in given if name not in ("patience", "fallback")]
        if unknown:
            raise InputError(f"only patience and fallback can be changed, got {unknown[0]!r}; make another experiment")
        return self._submit("settings", given, key).result()  # type: ignore[no-any-return]

    # --- looking ------------------------------------------------------------------------------------------------

    def summary(self) -> ExperimentSummary:
        """The experiment at a glance; print it, or read its fields."""
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
        """The changes that the policy has found since its last restart."""
        return self._look(lambda _, player: () if player.policy is None else player.policy.changes).result()  # type: ignore[no-any-return]

    def history(self) -> Any:
        """Estimates and probabilities over time, as the policy keeps them; None while the fallback decides."""
        return self._look(lambda _, player: None if player.policy is None else player.policy.history).result()

    def events(self, after: int = 0, limit: int = 1000) -> list[dict[str, Any]]:
        """Rows of the journal behind event `after`, as plain values."""
        return self._view.events(after, limit)

    def decision(self, id: Asked) -> DecisionRecord:  # noqa: A002
        """Look back at a decision: law, estimates and beliefs as they stood then, found by a replay in a process aside.

        One at a time: a LiveError says so while another is under way.
        """
        return look_back_apart(self._view, _text(id))

    def export(self, path: str | Path) -> int:
        """Write the log of all decisions to a Parquet file, whole or not at all; how many rows."""
        return export_log(self._view, path)

    def _look(self, look: Callable[[Writer, Player], Any]) -> Future[Any]:
        return self._submit("look", {"look": look}, None)

    # --- the rest -----------------------------------------------------------------------------------------------

    def submit(self, kind: str, values: dict[str, Any], key: str | None = None) -> Future[Any]:
        """A request in plain values, as a service has it; its answer is of plain values too, once it is on disk."""
        return self._submit(kind, values, key)

    def watch(self, on_batch: Callable[[Batch], None]) -> None:
        """Be told of every transaction, in the writer's thread: be quick."""
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
