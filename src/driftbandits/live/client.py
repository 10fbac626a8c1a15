"""A client of the service: the methods of a local experiment over HTTP, for threads (`Client`) and asyncio.

Requests that change something carry an idempotency key, so that they can be sent again after a time-out or an error
without being done twice. When the service is away, `decide` answers with the experiment's fallback over the arms last
seen active, marked `fallback=True`; the reward of such a decision is not sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from driftbandits.arms import ArmSet
from driftbandits.errors import AwayError, InputError, LiveError, MissingExtraError, NotStoredError
from driftbandits.live import wire
from driftbandits.live.definition import read_options
from driftbandits.live.docstrings import described_by
from driftbandits.live.experiment import Experiment
from driftbandits.live.looking import ExperimentSummary
from driftbandits.live.looking_back import DecisionRecord
from driftbandits.live.requests import LiveDecision, RewardAnswer
from driftbandits.live.wire import Attempts, Sending, StandIn
from driftbandits.policies.records import History
from driftbandits.showing import shown
from driftbandits.types import Change

try:
    import httpx
except ModuleNotFoundError:
    raise MissingExtraError("httpx", extra="serve", purpose="a client of the service") from None

Names = str | Iterable[str]
Rewards = Mapping[str, float] | Iterable[tuple[str | LiveDecision, float]]


class Client:
    """A service at a URL, for any number of threads; a context manager that closes its connections.

    Parameters
    ----------
    url : where it is, such as http://127.0.0.1:8350
    key : as `driftbandits keys create` printed it; None where none is needed
    timeout : seconds that a call may take in all, with everything that is sent again

    Raises
    ------
    MissingExtraError
        Without httpx, which the extra `serve` brings.

    >>> import driftbandits as db
    >>> with db.live.Client("http://127.0.0.1:8350", timeout=2.0) as client:
    ...     client.experiment("prices")
    RemoteExperiment('prices' at http://127.0.0.1:8350)
    """

    def __init__(self, url: str, key: str | None = None, *, timeout: float = 5.0) -> None:
        self.url, self._key, self._timeout = _checked_url(url), key, timeout
        self._http = httpx.Client(base_url=self.url, headers=_authorisation(key), trust_env=False)

    def create(self, name: str, **fields: Any) -> RemoteExperiment:
        """Make an experiment.

        Parameters
        ----------
        name : of the experiment, not taken yet
        fields : as `Database.create` takes them, by name

        Returns
        -------
        RemoteExperiment

        Raises
        ------
        InputError
            For whatever is wrong with the fields.
        ExperimentExistsError
            If the name is taken.
        AwayError
            If the service does not answer.
        """
        self._send(wire.change("/v1/experiments", _creation(name, fields), lambda _: None))
        return self.experiment(name)

    def names(self) -> list[str]:
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
        found: list[str] = self._send(wire.look("/v1/experiments", _names))
        return found

    def experiment(self, name: str) -> RemoteExperiment:
        """An experiment of the service; whether it exists shows when it is first used.

        Parameters
        ----------
        name : of the experiment

        Returns
        -------
        RemoteExperiment
        """
        return RemoteExperiment(self, name)

    def _send(self, sending: Sending) -> Any:
        attempts = Attempts(self._timeout, slow=sending.slow)
        while True:
            wait, result = self._try(sending, attempts)
            if wait is None:
                return result
            time.sleep(wait)

    def _try(self, sending: Sending, attempts: Attempts) -> tuple[float | None, Any]:
        """How long to wait before the next attempt, or None and the result."""
        try:
            answer = self._http.request(**_arguments(sending, attempts))
        except httpx.TransportError as error:
            return _again(attempts, error), None
        return _outcome(sending, attempts, answer)

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r})"


@described_by(Experiment)
class RemoteExperiment:
    """An experiment of a service: the methods of `Experiment`."""

    def __init__(self, client: Client, name: str) -> None:
        self.name = name
        self._client = client
        self._path = wire.path_of(name)
        self._stand_in = StandIn(name)

    def decide(
        self,
        size: int | None = None,
        *,
        allowed: Iterable[str] | None = None,
        segment: str | None = None,
        key: str | None = None,
    ) -> Any:
        """See `Experiment.decide`. While the service is away, the fallback decides."""
        names = _allowed(allowed)
        made = self._decide(1 if size is None else size, names, segment, key)
        return made[0] if size is None else made

    def _decide(self, size: int, allowed: list[str] | None, segment: Any, key: Any) -> list[LiveDecision]:
        stand_in = self._stand_in
        if stand_in.is_away:
            return stand_in.decide(size, allowed)
        try:
            made: list[LiveDecision] = self._client._send(_deciding(self._path, size, allowed, segment, key))
        except (AwayError, NotStoredError) as error:
            stand_in.fail()
            return stand_in.decide(size, allowed, error)
        if stand_in.is_due:
            self._see()
        return made

    def _see(self) -> None:
        try:
            self._client._send(wire.look(f"{self._path}/summary", self._stand_in.see))
        except LiveError:  # tried again in a while: what was decided counts
            self._stand_in.put_off()

    def reward(self, id: str | LiveDecision, reward: float, *, key: str | None = None) -> RewardAnswer:  # noqa: A002
        """See `Experiment.reward`. One of the client's own fallback is not sent."""
        if wire.is_own(_ident(id)):
            return RewardAnswer()
        body = {"id": _ident(id), "reward": reward}
        return self._client._send(wire.change(f"{self._path}/rewards", body, wire.read_rewards, key))  # type: ignore[no-any-return]

    def rewards(self, rewards: Rewards, *, key: str | None = None) -> RewardAnswer:
        """See `Experiment.rewards`."""
        body = _many(rewards)
        return self._client._send(wire.change(f"{self._path}/rewards", body, wire.read_rewards, key))  # type: ignore[no-any-return]

    def forget(self, ids: str | LiveDecision | Iterable[str | LiveDecision], *, key: str | None = None) -> int:
        """See `Experiment.forget`."""
        return self._client._send(_forgetting(self._path, ids, key))  # type: ignore[no-any-return]

    def arms(
        self, *, add: Any = None, retire: Names = (), bring_back: Names = (), key: str | None = None
    ) -> dict[str, Any]:
        """See `Experiment.arms`."""
        answer: dict[str, Any] = self._client._send(_arms_change(self._path, add, retire, bring_back, key))
        self._stand_in.see_arms(answer["active"])
        return answer

    def pause(self, *, key: str | None = None) -> None:
        """See `Experiment.pause`."""
        self._client._send(_steering(self._path, "pause", key))

    def resume(self, *, key: str | None = None) -> None:
        """See `Experiment.resume`."""
        self._client._send(_steering(self._path, "resume", key))

    def restart(self, *, key: str | None = None) -> None:
        """See `Experiment.restart`."""
        self._client._send(_steering(self._path, "restart", key))

    def summary(self) -> ExperimentSummary:
        """See `Experiment.summary`."""
        return self._client._send(wire.look(f"{self._path}/summary", wire.read_summary))  # type: ignore[no-any-return]

    def changes(self) -> tuple[Change, ...]:
        """See `Experiment.changes`."""
        return self._client._send(wire.look(f"{self._path}/changes", wire.read_changes))  # type: ignore[no-any-return]

    def history(self) -> History | None:
        """See `Experiment.history`."""
        return self._client._send(wire.look(f"{self._path}/history", wire.read_history))  # type: ignore[no-any-return]

    def events(self, after: int = 0, limit: int = 1000) -> list[dict[str, Any]]:
        """See `Experiment.events`."""
        return self._client._send(wire.look(f"{self._path}/events", _events, after=after, limit=limit))  # type: ignore[no-any-return]

    def decision(self, id: str) -> DecisionRecord:  # noqa: A002
        """See `Experiment.decision`."""
        return self._client._send(_looking_back(self._path, id))  # type: ignore[no-any-return]

    def export(self, path: str | Path) -> int:
        """See `Experiment.export`. Over HTTP the number given back is that of bytes, not of rows."""
        with _whole_file(Path(path)) as file, self._client._http.stream(**_exporting(self._path)) as answer:
            if answer.status_code != 200:
                answer.read()
                raise wire.error_of(answer.status_code, _content(answer))
            for piece in answer.iter_bytes():
                file.write(piece)
            return int(file.tell())

    @property
    def asynchronous(self) -> AsyncRemoteExperiment:
        """The same methods as coroutines, on connections of their own."""
        client = self._client
        return AsyncClient(client.url, client._key, timeout=client._timeout).experiment(self.name)

    def __repr__(self) -> str:
        return f"RemoteExperiment({self.name!r} at {self._client.url})"


@described_by(Client)
class AsyncClient:
    """`Client` for asyncio: its methods are to be awaited, as are those of its experiments.

    Parameters
    ----------
    url, key, timeout : as in `Client`

    >>> import asyncio
    >>> import driftbandits as db
    >>> async def look():
    ...     async with db.live.AsyncClient("http://127.0.0.1:8350", timeout=2.0) as client:
    ...         return client.experiment("prices")
    >>> asyncio.run(look())
    AsyncRemoteExperiment('prices' at http://127.0.0.1:8350)
    """

    def __init__(self, url: str, key: str | None = None, *, timeout: float = 5.0) -> None:
        self.url, self._key, self._timeout = _checked_url(url), key, timeout
        self._http = httpx.AsyncClient(base_url=self.url, headers=_authorisation(key), trust_env=False)

    async def create(self, name: str, **fields: Any) -> AsyncRemoteExperiment:
        """See `Client.create`."""
        await self._send(wire.change("/v1/experiments", _creation(name, fields), lambda _: None))
        return self.experiment(name)

    async def names(self) -> list[str]:
        """See `Client.names`."""
        found: list[str] = await self._send(wire.look("/v1/experiments", _names))
        return found

    def experiment(self, name: str) -> AsyncRemoteExperiment:
        """See `Client.experiment`."""
        return AsyncRemoteExperiment(self, name)

    async def _send(self, sending: Sending) -> Any:
        attempts = Attempts(self._timeout, slow=sending.slow)
        while True:
            wait, result = await self._try(sending, attempts)
            if wait is None:
                return result
            await asyncio.sleep(wait)

    async def _try(self, sending: Sending, attempts: Attempts) -> tuple[float | None, Any]:
        try:
            answer = await self._http.request(**_arguments(sending, attempts))
        except httpx.TransportError as error:
            return _again(attempts, error), None
        return _outcome(sending, attempts, answer)

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({self.url!r})"


@described_by(RemoteExperiment)
class AsyncRemoteExperiment:
    """`RemoteExperiment` for asyncio."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self.name = name
        self.client = client
        self._path = wire.path_of(name)
        self._stand_in = StandIn(name)

    async def decide(
        self,
        size: int | None = None,
        *,
        allowed: Iterable[str] | None = None,
        segment: str | None = None,
        key: str | None = None,
    ) -> Any:
        """See `RemoteExperiment.decide`."""
        names = _allowed(allowed)
        made = await self._decide(1 if size is None else size, names, segment, key)
        return made[0] if size is None else made

    async def _decide(self, size: int, allowed: list[str] | None, segment: Any, key: Any) -> list[LiveDecision]:
        stand_in = self._stand_in
        if stand_in.is_away:
            return stand_in.decide(size, allowed)
        try:
            made: list[LiveDecision] = await self.client._send(_deciding(self._path, size, allowed, segment, key))
        except (AwayError, NotStoredError) as error:
            stand_in.fail()
            return stand_in.decide(size, allowed, error)
        if stand_in.is_due:
            await self._see()
        return made

    async def _see(self) -> None:
        try:
            await self.client._send(wire.look(f"{self._path}/summary", self._stand_in.see))
        except LiveError:  # tried again in a while: what was decided counts
            self._stand_in.put_off()

    async def reward(self, id: str | LiveDecision, reward: float, *, key: str | None = None) -> RewardAnswer:  # noqa: A002
        """See `RemoteExperiment.reward`."""
        if wire.is_own(_ident(id)):
            return RewardAnswer()
        body = {"id": _ident(id), "reward": reward}
        return await self.client._send(wire.change(f"{self._path}/rewards", body, wire.read_rewards, key))  # type: ignore[no-any-return]

    async def rewards(self, rewards: Rewards, *, key: str | None = None) -> RewardAnswer:
        """See `RemoteExperiment.rewards`."""
        body = _many(rewards)
        return await self.client._send(wire.change(f"{self._path}/rewards", body, wire.read_rewards, key))  # type: ignore[no-any-return]

    async def forget(self, ids: str | LiveDecision | Iterable[str | LiveDecision], *, key: str | None = None) -> int:
        """See `RemoteExperiment.forget`."""
        return await self.client._send(_forgetting(self._path, ids, key))  # type: ignore[no-any-return]

    async def arms(
        self, *, add: Any = None, retire: Names = (), bring_back: Names = (), key: str | None = None
    ) -> dict[str, Any]:
        """See `RemoteExperiment.arms`."""
        answer: dict[str, Any] = await self.client._send(_arms_change(self._path, add, retire, bring_back, key))
        self._stand_in.see_arms(answer["active"])
        return answer

    async def pause(self, *, key: str | None = None) -> None:
        """See `RemoteExperiment.pause`."""
        await self.client._send(_steering(self._path, "pause", key))

    async def resume(self, *, key: str | None = None) -> None:
        """See `RemoteExperiment.resume`."""
        await self.client._send(_steering(self._path, "resume", key))

    async def restart(self, *, key: str | None = None) -> None:
        """See `RemoteExperiment.restart`."""
        await self.client._send(_steering(self._path, "restart", key))

    async def summary(self) -> ExperimentSummary:
        """See `RemoteExperiment.summary`."""
        return await self.client._send(wire.look(f"{self._path}/summary", wire.read_summary))  # type: ignore[no-any-return]

    async def changes(self) -> tuple[Change, ...]:
        """See `RemoteExperiment.changes`."""
        return await self.client._send(wire.look(f"{self._path}/changes", wire.read_changes))  # type: ignore[no-any-return]

    async def history(self) -> History | None:
        """See `RemoteExperiment.history`."""
        return await self.client._send(wire.look(f"{self._path}/history", wire.read_history))  # type: ignore[no-any-return]

    async def events(self, after: int = 0, limit: int = 1000) -> list[dict[str, Any]]:
        """See `RemoteExperiment.events`."""
        return await self.client._send(wire.look(f"{self._path}/events", _events, after=after, limit=limit))  # type: ignore[no-any-return]

    async def decision(self, id: str) -> DecisionRecord:  # noqa: A002
        """See `RemoteExperiment.decision`."""
        return await self.client._send(_looking_back(self._path, id))  # type: ignore[no-any-return]

    async def export(self, path: str | Path) -> int:
        """See `RemoteExperiment.export`."""
        with _whole_file(Path(path)) as file:
            async with self.client._http.stream(**_exporting(self._path)) as answer:
                if answer.status_code != 200:
                    await answer.aread()
                    raise wire.error_of(answer.status_code, _content(answer))
                async for piece in answer.aiter_bytes():
                    file.write(piece)
                return int(file.tell())

    def __repr__(self) -> str:
        return f"AsyncRemoteExperiment({self.name!r} at {self.client.url})"


# --- what both send ---------------------------------------------------------------------------------------------------


def _checked_url(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise InputError(f"url must begin with http:// or https://, such as http://127.0.0.1:8350, got {shown(url)}")
    return url.rstrip("/")


def _authorisation(key: str | None) -> dict[str, str]:
    return {} if key is None else {"Authorization": f"Bearer {key}"}


def _arguments(sending: Sending, attempts: Attempts) -> dict[str, Any]:
    return {
        "method": sending.method,
        "url": sending.path,
        "json": sending.body,
        "params": sending.query or None,
        "headers": sending.headers,
        "timeout": attempts.left,
    }


def _again(attempts: Attempts, error: Exception) -> float:
    wait = attempts.pause()
    if wait is None:
        raise AwayError(f"the service does not answer: {type(error).__name__}: {error}") from error
    return wait


def _outcome(sending: Sending, attempts: Attempts, answer: httpx.Response) -> tuple[float | None, Any]:
    if answer.is_success:
        return None, sending.read(answer.json())
    error = wire.error_of(answer.status_code, _content(answer))
    if attempts.is_open(answer.status_code):
        wait = attempts.pause(answer.headers.get("retry-after"))
        if wait is not None:
            return wait, None
        if answer.status_code != 409 and not isinstance(error, NotStoredError):
            raise AwayError(str(error)) from error
    raise error


def _content(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None


def _creation(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    segments = fields.get("segments")
    listed = {"segments": _options(segments, "segments")} if segments else {}
    return {**fields, **listed, "name": name, "arms": _options(fields.get("arms"))}


def _names(answer: Any) -> list[str]:
    return [row["name"] for row in answer["experiments"]]


def _events(answer: Any) -> Any:
    return answer["events"]


def _allowed(given: Iterable[str] | None) -> list[str] | None:
    """Names of arms as a list; a single text would be taken apart into letters."""
    if isinstance(given, str):
        raise InputError(f"allowed must be a list of names, got {shown(given)}; use [{shown(given)}]")
    return None if given is None else list(given)


def _deciding(path: str, size: int, allowed: list[str] | None, segment: Any, key: Any) -> Sending:
    body = {"size": size, "allowed": allowed, "segment": segment}
    return wire.change(f"{path}/decisions", body, wire.read_decisions, key)


def _many(rewards: Rewards) -> dict[str, Any]:
    pairs = [
        (_ident(given), reward) for given, reward in (rewards.items() if isinstance(rewards, Mapping) else rewards)
    ]
    return {"rewards": [{"id": given, "reward": reward} for given, reward in pairs if not wire.is_own(given)]}


def _ident(given: str | LiveDecision) -> str:
    """A decision stands for its id."""
    return given.id if isinstance(given, LiveDecision) else given


def _forgetting(path: str, ids: Any, key: str | None) -> Sending:
    listed = [ids] if isinstance(ids, str | LiveDecision) else list(ids)
    body = {"ids": [_ident(given) for given in listed if not wire.is_own(_ident(given))]}
    return wire.change(f"{path}/forget", body, lambda answer: answer["forgotten"], key)


def _arms_change(path: str, add: Any, retire: Names, bring_back: Names, key: str | None) -> Sending:
    one = isinstance(add, str) or (isinstance(add, Mapping) and "name" in add)
    body = {"add": _options([add] if one else add), "retire": _texts(retire), "bring_back": _texts(bring_back)}
    return wire.change(f"{path}/arms", body, lambda answer: answer, key)


def _options(given: Any, what: str = "arms") -> list[dict[str, Any]]:
    """Arms as a body has them: given as names, mappings with names and features, or names mapped to features."""
    if given is None or (not isinstance(given, ArmSet) and not given):
        return []
    found = read_options(what, given)
    return [{"name": option.name, "features": list(option.features)} for option in found]


def _texts(given: Names) -> list[str]:
    return [given] if isinstance(given, str) else list(given or ())


def _steering(path: str, what: str, key: str | None) -> Sending:
    return wire.change(f"{path}/{what}", {}, lambda _: None, key)


def _looking_back(path: str, given: Any) -> Sending:
    return Sending("GET", f"{path}/decisions/{quote(str(_ident(given)), safe='')}", wire.read_record, slow=True)


def _exporting(path: str) -> dict[str, Any]:
    return {"method": "GET", "url": f"{path}/export.parquet", "timeout": 300.0}


@contextlib.contextmanager
def _whole_file(target: Path) -> Any:
    """A file that takes its name when all of it is there."""
    descriptor, side = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        Path(side).replace(target)
    except BaseException:
        Path(side).unlink(missing_ok=True)
        raise
