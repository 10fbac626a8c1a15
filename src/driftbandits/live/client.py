"""A client of the service: the methods of a local experiment over HTTP, for threads (`Client`) and asyncio.

Requests that change something carry an idempotency key, so that they can be sent again after a time-out or an error
without being done twice. When the service is away, `decide` answers with the experiment's fallback over the arms last
seen active, marked `fallback=True`; the reward of such a decision is not sent.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import random
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import quote

import numpy as np

from driftbandits import errors
from driftbandits.arms.contexts import Contexts, rows_of
from driftbandits.errors import AwayError, InputError, LiveError, MissingExtraError, NotStoredError
from driftbandits.live.decision_audit import DecisionRecord
from driftbandits.live.experiment import (
    Asked,
    Names,
    Operations,
    Synchronous,
    allowed_names,
    finish,
    id_of,
    option_values,
    synchronous,
)
from driftbandits.live.export import whole_file
from driftbandits.live.requests import LiveDecision
from driftbandits.live.summary import ArmSummary, ExperimentSummary
from driftbandits.policies.records import History
from driftbandits.text import shown
from driftbandits.types import Change

try:
    import httpx
except ModuleNotFoundError:
    raise MissingExtraError("httpx", extra="serve", purpose="a client of the service") from None

F = TypeVar("F", bound=Callable[..., Any])
AWAY = "away-"  # begins the ids of decisions that a client made itself
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0  # seconds between two attempts
SLOW_SECONDS, EXPORT_SECONDS = 150.0, 300.0  # for what takes a replay; for a log
_EXPERIMENTS, _KEYS = "/v1/experiments", "/v1/keys"
_READING = ("summary", "changes", "history", "events")  # paths of the same names
_URN = "urn:driftbandits:"
_ERRORS: dict[str, type[Exception]] = {
    "unknown-experiment": errors.UnknownExperimentError,
    "unknown-decision": errors.UnknownDecisionError,
    "experiment-exists": errors.ExperimentExistsError,
    "key-reused": errors.KeyReusedError,
    "conflict": errors.ConflictError,
    "gone": errors.GoneError,
    "not-stored": errors.NotStoredError,
    "other-decider": errors.OtherDeciderError,
    "reward": errors.RewardError,
    "input": errors.InputError,
}


class ServiceOperations:
    """Requests of a client that are not about one experiment. Those about keys need a key of scope admin."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def names(self) -> list[str]:
        """Names of all experiments.

        Returns
        -------
        list of str
            The oldest first.

        Raises
        ------
        AwayError
            If the service does not answer.
        """
        return [row["name"] for row in (await self._link.send(Sending("GET", _EXPERIMENTS)))["experiments"]]

    async def list_keys(self) -> list[dict[str, Any]]:
        """All keys, without their secrets.

        Returns
        -------
        list of dict
            The oldest first: "id", "name", "scope", "per_minute", and "created", "expires" and "revoked" in seconds
            since 1970.
        """
        found: list[dict[str, Any]] = (await self._link.send(Sending("GET", _KEYS)))["keys"]
        return found

    async def create_key(
        self, scope: str, *, name: str = "unnamed", per_minute: int | None = None, days: float | None = None
    ) -> str:
        """Make a key. If the answer is lost, there may be a key that nobody knows: revoke it.

        Parameters
        ----------
        scope : "guest", "decide", "read" or "admin"
        name : for whom it is
        per_minute : how many decisions it may make per minute; by default 600 for a guest, no limit for others
        days : how long it is valid; None until it is revoked

        Returns
        -------
        str
            The key, which is shown this once.

        Raises
        ------
        InputError
            If a value is invalid.
        """
        body = {"scope": scope, "name": name, "per_minute": per_minute, "days": days}
        return str((await self._link.send(Sending("POST", _KEYS, body)))["key"])

    async def rotate_key(self, id: str, *, hours: float = 24.0) -> str:  # noqa: A002
        """Make a new key like an old one; the old one stays valid for some hours.

        Parameters
        ----------
        id : of the old key
        hours : how long the old one stays valid

        Returns
        -------
        str
            The new key, which is shown this once.

        Raises
        ------
        InputError
            If no key in use has this id.
        """
        path = f"{_KEYS}/{quote(id, safe='')}/rotate"
        return str((await self._link.send(Sending("POST", path, {"hours": hours})))["key"])

    async def revoke_key(self, id: str) -> None:  # noqa: A002
        """End a key.

        Parameters
        ----------
        id : of the key

        Raises
        ------
        InputError
            If no key in use has this id.
        """
        await self._link.send(Sending("POST", f"{_KEYS}/{quote(id, safe='')}/revoke", {}))


class Client:
    """A service at a URL, for any number of threads; a context manager that closes its connections.

    Parameters
    ----------
    url : where it is, such as http://127.0.0.1:8350
    key : the one that `driftbandits keys create` printed; None if none is needed
    timeout : seconds that a call may take in all, retries included

    Raises
    ------
    MissingExtraError
        Without httpx, which the extra `serve` brings.

    >>> import driftbandits as db
    >>> with db.live.Client("http://127.0.0.1:8350", timeout=2.0) as client:
    ...     client.experiment("prices")
    RemoteExperiment('prices' at http://127.0.0.1:8350)
    """

    names = synchronous(ServiceOperations.names)
    list_keys = synchronous(ServiceOperations.list_keys)
    create_key = synchronous(ServiceOperations.create_key)
    rotate_key = synchronous(ServiceOperations.rotate_key)
    revoke_key = synchronous(ServiceOperations.revoke_key)

    def __init__(self, url: str, key: str | None = None, *, timeout: float = 5.0) -> None:
        self._link = BlockingLink(url, key, timeout)
        self._operations = ServiceOperations(self._link)
        self.url = self._link.url

    def create(self, name: str, **fields: Any) -> RemoteExperiment:
        """Make an experiment.

        Parameters
        ----------
        name : of the new experiment
        fields : as `Database.create` takes them, by name

        Returns
        -------
        RemoteExperiment

        Raises
        ------
        InputError
            If a field is invalid.
        ExperimentExistsError
            If the name is taken.
        AwayError
            If the service does not answer.
        """
        finish(self._link.send(_creation(name, fields)))
        return self.experiment(name)

    def experiment(self, name: str) -> RemoteExperiment:
        """An experiment of the service. Whether it exists is checked at its first use.

        Parameters
        ----------
        name : of the experiment

        Returns
        -------
        RemoteExperiment
        """
        return RemoteExperiment(self._link, name)

    def close(self) -> None:
        """Close its connections."""
        self._link.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r})"


def _documented_by(other: Callable[..., Any]) -> Callable[[F], F]:
    """Copy the docstring of an equivalent method."""

    def describe(method: F) -> F:
        method.__doc__ = other.__doc__
        return method

    return describe


class AsyncClient(ServiceOperations):
    """`Client` for asyncio: its methods are to be awaited, as are those of its experiments.

    Parameters
    ----------
    url, key, timeout : as in `Client`

    >>> import asyncio
    >>> import driftbandits as db
    >>> async def find():
    ...     async with db.live.AsyncClient("http://127.0.0.1:8350", timeout=2.0) as client:
    ...         return client.experiment("prices")
    >>> asyncio.run(find())
    AsyncRemoteExperiment('prices' at http://127.0.0.1:8350)
    """

    def __init__(self, url: str, key: str | None = None, *, timeout: float = 5.0) -> None:
        super().__init__(Link(url, key, timeout))
        self.url = self._link.url

    @_documented_by(Client.create)
    async def create(self, name: str, **fields: Any) -> AsyncRemoteExperiment:
        """See `Client.create`."""
        await self._link.send(_creation(name, fields))
        return self.experiment(name)

    @_documented_by(Client.experiment)
    def experiment(self, name: str) -> AsyncRemoteExperiment:
        """See `Client.experiment`."""
        return AsyncRemoteExperiment(self, self._link, name)

    async def close(self) -> None:
        """Close its connections."""
        await self._link.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({self.url!r})"


# --- experiments ----------------------------------------------------------------------------------------------------


class RemoteOperations(Operations):
    """Operations over HTTP: answers are read from JSON, and `decide` has a fallback while the service is away."""

    def __init__(self, link: Link, name: str) -> None:
        self.name = name
        self.fallback = Fallback(name)
        self._link = link

    async def _perform(self, kind: str, values: dict[str, Any], key: str | None = None) -> Any:
        if kind == "export":
            return await self._link.download(f"{_path_of(self.name)}/export.parquet", Path(values["path"]))
        answer = await self._link.send(_sending(self.name, kind, values, key))
        return answer["decisions"] if kind == "decide" else answer

    def _knows(self, given: Any) -> bool:
        """Whether the service made this decision, not a client while the service was away."""
        return not (isinstance(given, str) and given.startswith(AWAY))

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
        """See `Operations.decide`."""
        if contexts is not None:
            contexts = rows_of(contexts)
        names, count = allowed_names(allowed), (1 if size is None else size) if contexts is None else len(contexts)
        fallback, failure = self.fallback, None
        if not fallback.is_away:
            try:
                request = {"segment": segment, "context": context, "contexts": contexts}
                found = await super().decide(size, allowed=names, key=key, **request)
                if fallback.is_due:
                    await self._see_arms()
                return found
            except (AwayError, NotStoredError) as error:
                fallback.fail()
                failure = error
        made = fallback.decide(count, names, failure)
        return made[0] if size is None and contexts is None else made

    async def _see_arms(self) -> None:
        try:
            self.fallback.see(await self._perform("summary", {}))
        except LiveError:  # tried again in a while: the decision was made
            self.fallback.put_off()

    async def arms(
        self, *, add: Any = None, retire: Names = (), bring_back: Names = (), key: str | None = None
    ) -> dict[str, Any]:
        """See `Operations.arms`."""
        answer = await super().arms(add=add, retire=retire, bring_back=bring_back, key=key)
        self.fallback.see_arms(answer["active"])
        return answer

    async def summary(self) -> ExperimentSummary:
        """See `Operations.summary`."""
        answer = await self._perform("summary", {})
        names = [one.name for one in dataclasses.fields(ArmSummary)]
        arms = tuple(ArmSummary(**{name: arm[name] for name in names}) for arm in answer["arms"])
        fields = (one.name for one in dataclasses.fields(ExperimentSummary))
        values = {name: answer[name] for name in fields if name in answer}  # an older server has fewer
        return ExperimentSummary(**{**values, "arms": arms, "health": tuple(answer["health"])})

    async def changes(self) -> tuple[Change, ...]:
        """See `Operations.changes`."""
        answer = await self._perform("changes", {})
        names = {one.name for one in dataclasses.fields(Change)}
        return tuple(Change.from_dict({name: row[name] for name in row if name in names}) for row in answer["changes"])

    async def history(self) -> History | None:
        """See `Operations.history`."""
        answer = await self._perform("history", {})
        if not answer["rounds"]:
            return None
        names = tuple(answer["arms"])
        estimate, law = (_floats(answer[name]) for name in ("estimate", "probability"))
        low, high = (None if answer[name] is None else _floats(answer[name]) for name in ("low", "high"))
        return History(np.array(answer["rounds"]), np.arange(len(names)), names, estimate, law, low, high)

    async def events(self, after: int = 0, limit: int = 1000) -> list[dict[str, Any]]:
        """See `Operations.events`."""
        answer = await self._perform("events", {"after": after, "limit": limit})
        rows: list[dict[str, Any]] = answer["events"]
        return rows

    async def decision(self, id: Asked) -> DecisionRecord:  # noqa: A002
        """See `Operations.decision`."""
        return DecisionRecord(**(await self._perform("decision", {"given": id_of(id)})))


def _floats(rows: Any) -> Any:
    return np.array([[math.nan if value is None else value for value in row] for row in rows])


class AsyncRemoteExperiment(RemoteOperations):
    """`RemoteExperiment` for asyncio; `client` has its connections."""

    def __init__(self, client: AsyncClient, link: Link, name: str) -> None:
        super().__init__(link, name)
        self.client = client

    def __repr__(self) -> str:
        return f"AsyncRemoteExperiment({self.name!r} at {self.client.url})"


class RemoteExperiment(Synchronous):
    """An experiment of a service: the methods of `Experiment`.

    While the service is away `decide` answers with the fallback. `export` returns the number of bytes, not of rows.
    """

    def __init__(self, link: BlockingLink, name: str) -> None:
        self.name = name
        self._link = link
        self._operations = RemoteOperations(link, name)

    @property
    def asynchronous(self) -> AsyncRemoteExperiment:
        """The same methods as coroutines, on connections of their own."""
        link = self._link
        return AsyncClient(link.url, link.key, timeout=link.timeout).experiment(self.name)

    def __repr__(self) -> str:
        return f"RemoteExperiment({self.name!r} at {self._link.url})"


class Fallback:
    """Decides while the service is away: the experiment's fallback, over the arms last seen active.

    After a failure the service is tried again once a second; in between, callers are not kept waiting.
    """

    TRY_AGAIN, SEE_AGAIN = 1.0, 60.0  # seconds

    def __init__(self, name: str, now: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._now = now
        self._active: list[str] = []
        self._arm: str | None = None
        self._seen_at = self._failed_at = -math.inf

    @property
    def is_due(self) -> bool:
        """Whether the arms should be read again."""
        return self._now() - self._seen_at > self.SEE_AGAIN

    @property
    def is_away(self) -> bool:
        """Whether the service did not answer a moment ago."""
        return bool(self._active) and self._now() - self._failed_at < self.TRY_AGAIN

    def see(self, summary: Any) -> None:
        """Note the active arms of a summary."""
        self._active = [arm["name"] for arm in summary["arms"] if not arm["retired"]]
        self._arm, self._seen_at = summary["fallback"], self._now()

    def put_off(self) -> None:
        """The arms could not be read: retry later."""
        self._seen_at = self._now() - self.SEE_AGAIN + self.TRY_AGAIN

    def see_arms(self, active: Iterable[str]) -> None:
        """These arms are active now."""
        self._active = list(active)

    def fail(self) -> None:
        """The service did not answer."""
        self._failed_at = self._now()

    def decide(self, size: int, allowed: Iterable[str] | None, error: Exception | None = None) -> list[LiveDecision]:
        """Decide locally; raises `error` if no arm was ever seen."""
        names = None if allowed is None else set(allowed)
        choices = [name for name in self._active if names is None or name in names]
        if not choices:
            raise error or LiveError(f"the service is away, and nothing is known of experiment {self._name!r}")
        if self._arm in choices:
            choices = [self._arm]
        return [
            LiveDecision(f"{AWAY}{secrets.token_hex(8)}", random.choice(choices), 1.0 / len(choices), fallback=True)
            for _ in range(size)
        ]


# --- HTTP -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sending:
    """A request. One that changes something carries a key, so it can be sent again."""

    method: str
    path: str
    body: dict[str, Any] | None = None
    key: str | None = None
    query: dict[str, Any] = field(default_factory=dict)
    slow: bool = False  # it takes a replay: one attempt has all the time there is


def _path_of(name: str) -> str:
    return f"{_EXPERIMENTS}/{quote(name, safe='')}"


def _sending(name: str, kind: str, values: dict[str, Any], key: str | None) -> Sending:
    """The request for an operation on an experiment."""
    path = _path_of(name)
    if kind == "decision":
        return Sending("GET", f"{path}/decisions/{quote(str(values['given']), safe='')}", slow=True)
    if kind in _READING:
        return Sending("GET", f"{path}/{kind}", query=values)
    if kind == "rewards":
        values = {"rewards": [{"id": given, "reward": reward} for given, reward in values["rewards"]]}
    if kind == "decide" and "contexts" in values:
        values = {**values, "contexts": _without_nan(values["contexts"])}
    last = {"decide": "decisions", "reward": "rewards"}.get(kind, kind)
    return Sending("POST", f"{path}/{last}", values, key or secrets.token_hex(16))


def _without_nan(value: Any) -> Any:
    """JSON has no NaN: what is missing is null."""
    if isinstance(value, dict):
        return {name: _without_nan(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_without_nan(one) for one in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _creation(name: str, fields: dict[str, Any]) -> Sending:
    segments, contexts = fields.get("segments"), fields.get("contexts")
    listed: dict[str, Any] = {"segments": option_values("segments", segments)} if segments else {}
    if isinstance(contexts, Contexts):
        listed["contexts"] = contexts.to_dict()
    body = {**fields, **listed, "name": name, "arms": option_values("arms", fields.get("arms"))}
    return Sending("POST", _EXPERIMENTS, body, secrets.token_hex(16))


class Attempts:
    """When to send a request again, and when to give up: after `seconds` in all.

    An answer that leaves open what happened, or none at all, is followed by the same request with the same key. A
    conflict right after that says that the first is still under way.
    """

    def __init__(self, seconds: float, *, slow: bool = False, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        whole = max(seconds, SLOW_SECONDS) if slow else seconds
        self._end, self._each = now() + whole, whole if slow else 0.4 * whole
        self._pause = FIRST_PAUSE
        self._unsettled = False

    @property
    def left(self) -> float:
        """Seconds for the next attempt: usually two fit, so that a lost answer can still be fetched."""
        return max(min(self._end - self._now(), self._each), 0.001)

    def arguments(self, sending: Sending) -> dict[str, Any]:
        """What httpx is given for the next attempt."""
        key = sending.key
        return {
            "method": sending.method,
            "url": sending.path,
            "json": sending.body,
            "params": sending.query or None,
            "headers": {} if key is None else {"Idempotency-Key": key, "Content-Type": "application/json"},
            "timeout": self.left,
        }

    def is_open(self, status: int) -> bool:
        """Whether an answer with this status should be followed by another attempt."""
        return status in (502, 503, 504) or (status == 409 and self._unsettled)

    def after_error(self, error: Exception) -> float:
        """How long to wait after a broken connection; AwayError if there is no time left."""
        wait = self.pause()
        if wait is None:
            raise AwayError(f"the service does not answer: {type(error).__name__}: {error}") from error
        return wait

    def after_problem(self, answer: httpx.Response) -> float:
        """How long to wait after an answer that is a problem; raised unless another attempt may help."""
        error, status = _error_of(answer), answer.status_code
        if self.is_open(status):
            wait = self.pause(answer.headers.get("retry-after"))
            if wait is not None:
                return wait
            if status != 409 and not isinstance(error, NotStoredError):
                raise AwayError(str(error)) from error
        raise error

    def pause(self, wanted: str | None = None) -> float | None:
        """How long to wait before the next attempt; None: give up."""
        self._unsettled = True
        least = float(wanted) if wanted is not None and wanted.isdigit() and self._pause > 0.3 else 0.0
        pause = max(self._pause * random.uniform(0.5, 1.0), min(least, LONGEST_PAUSE))
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        return None if self._now() + pause >= self._end else pause


def _error_of(answer: httpx.Response) -> Exception:
    """The library's error for a problem response of the server."""
    try:
        content = answer.json()
    except ValueError:
        content = None
    found = content if isinstance(content, dict) else {}
    unknown = InputError if answer.status_code == 422 else LiveError
    kind = _ERRORS.get(str(found.get("type", "")).removeprefix(_URN), unknown)
    return kind(str(found.get("detail") or f"the server answered with status {answer.status_code}"))


class Link:
    """Connections to a service, for asyncio."""

    def __init__(self, url: str, key: str | None, timeout: float, client: Any = httpx.AsyncClient) -> None:
        if not url.startswith(("http://", "https://")):
            raise InputError(
                f"url must begin with http:// or https://, such as http://127.0.0.1:8350, got {shown(url)}"
            )
        self.url, self.key, self.timeout = url.rstrip("/"), key, timeout
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self.http = client(base_url=self.url, headers=headers, trust_env=False)

    async def send(self, sending: Sending) -> Any:
        """The content of the answer; retried while that may help."""
        attempts = Attempts(self.timeout, slow=sending.slow)
        while True:
            try:
                answer = await self.request(attempts.arguments(sending))
            except httpx.TransportError as error:
                wait = attempts.after_error(error)
            else:
                if answer.is_success:
                    return answer.json()
                wait = attempts.after_problem(answer)
            await self.sleep(wait)

    async def request(self, arguments: dict[str, Any]) -> httpx.Response:
        """Send a request once."""
        answer: httpx.Response = await self.http.request(**arguments)
        return answer

    async def sleep(self, seconds: float) -> None:
        """Wait before the next attempt."""
        await asyncio.sleep(seconds)

    async def download(self, path: str, target: Path) -> int:
        """Write an answer to a file, whole or not at all; how many bytes."""
        with whole_file(target) as file:
            async with self.http.stream("GET", path, timeout=EXPORT_SECONDS) as answer:
                if answer.status_code != 200:
                    await answer.aread()
                    raise _error_of(answer)
                async for piece in answer.aiter_bytes():
                    file.write(piece)
                return file.tell()


class BlockingLink(Link):
    """Connections for threads: its coroutines never suspend."""

    def __init__(self, url: str, key: str | None, timeout: float) -> None:
        super().__init__(url, key, timeout, httpx.Client)

    async def request(self, arguments: dict[str, Any]) -> httpx.Response:
        """Send a request once."""
        answer: httpx.Response = self.http.request(**arguments)
        return answer

    async def sleep(self, seconds: float) -> None:
        """Wait before the next attempt."""
        time.sleep(seconds)

    async def download(self, path: str, target: Path) -> int:
        """Write an answer to a file, whole or not at all; how many bytes."""
        with whole_file(target) as file, self.http.stream("GET", path, timeout=EXPORT_SECONDS) as answer:
            if answer.status_code != 200:
                answer.read()
                raise _error_of(answer)
            for piece in answer.iter_bytes():
                file.write(piece)
            return file.tell()
