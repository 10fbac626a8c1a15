"""Simulated runs: `simulate` plays a policy in a world, `Trace` is the record of it, one column per quantity."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from driftbandits._util import files
from driftbandits._util.checks import check_count
from driftbandits._util.guard import one_blas_thread
from driftbandits._util.machine import data_frame
from driftbandits._util.seeding import check_seed
from driftbandits.arms.contexts import rows_of
from driftbandits.environments import Environment, uniforms
from driftbandits.environments.base import LARGEST_TABLE
from driftbandits.errors import HorizonError, InputError, MissingExtraError
from driftbandits.policies import Policy
from driftbandits.text import counted, first_line, shown
from driftbandits.types import Change, Decision, Decisions, Floats, Ints

_COLUMNS = {"arm": np.int32, "reward": np.float64, "regret": np.float64, "probability": np.float64, "law": np.int64}
_FORMAT = 2
MOST_POINTS_DRAWN = 5_000


@dataclass(frozen=True, repr=False)
class Trace:
    """What happened in a simulated run: columns of equal length, one entry per round from round `start` on.

    Rewards and regrets are in the world's units.

    Parameters
    ----------
    start : the first round played
    arm : number of the arm played, per round
    reward : the observed reward
    regret : the best mean of the round less the mean of the arm played; not cumulative
    probability : with which the arm was drawn
    law : number of the law it was drawn from
    changes : those found during the run
    seconds : wall time of policy and world together
    policy, world : what was played, as their reprs
    seed : of the noise

    >>> import driftbandits as db
    >>> world = db.environments.create("switching/1", seed=0, horizon=100, switches=(50,))
    >>> trace = db.simulate(db.Uniform(world.arms), world)
    >>> len(trace), trace.regret.shape, trace.changes
    (100, (100,), ())
    """

    start: int
    arm: npt.NDArray[np.int32]
    reward: Floats
    regret: Floats
    probability: Floats
    law: Ints
    changes: tuple[Change, ...]
    seconds: float
    policy: str
    world: str
    seed: int

    def __post_init__(self) -> None:
        for name in _COLUMNS:
            getattr(self, name).flags.writeable = False

    def __len__(self) -> int:
        return len(self.arm)

    def __repr__(self) -> str:
        """What happened, in one line."""
        rounds = f"rounds {self.start} to {self.start + len(self) - 1}"
        found = (
            f"changes found at {shown([change.round for change in self.changes])}"
            if self.changes
            else "no changes found"
        )
        return f"Trace({rounds}, regret {self.regret.sum():.5g}, {found}, {self.seconds:.2g} s, seed {self.seed})"

    @property
    def cumulative_regret(self) -> Floats:
        """Regret up to and including every round, shape (rounds,)."""
        return np.cumsum(self.regret)

    def plot(self) -> Any:
        """Cumulative regret with the changes found, and below it the arms that were played.

        Returns
        -------
        matplotlib Figure

        Raises
        ------
        MissingExtraError
            Without matplotlib, which the extra `experiments` brings.

        >>> import driftbandits as db
        >>> world = db.environments.create("switching/1", seed=0, horizon=100, switches=(50,))
        >>> len(db.simulate(db.Uniform(world.arms), world).plot().axes)
        2
        """
        try:
            from matplotlib.figure import Figure
        except ModuleNotFoundError as error:
            raise MissingExtraError(str(error.name), extra="experiments", purpose="plot a trace") from None
        figure = Figure(figsize=(7.0, 4.5), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        some = slice(None, None, max(len(self) // MOST_POINTS_DRAWN, 1))
        rounds = (self.start + np.arange(len(self)))[some]
        above.plot(rounds, self.cumulative_regret[some], color="#0072B2")
        for change in self.changes:
            above.axvline(change.round, color="#D55E00", linewidth=1, linestyle="--")
        above.set_ylabel("cumulative regret")
        found = f"{counted(len(self.changes), 'change')} found"
        above.set_title(f"{self.policy.partition('(')[0]}, seed {self.seed}: {found}", loc="left", fontsize=10)
        below.plot(rounds, self.arm[some], linestyle="", marker=".", markersize=2, color="#0072B2")
        below.set_ylabel("arm played")
        below.set_xlabel("round")
        return figure

    def to_pandas(self) -> Any:
        """The columns as a DataFrame, one row per round.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        MissingExtraError
            Without pandas.

        >>> import driftbandits as db
        >>> world = db.environments.create("switching/1", seed=0, horizon=100, switches=(50,))
        >>> list(db.simulate(db.Uniform(world.arms), world).to_pandas().columns)
        ['round', 'arm', 'reward', 'regret', 'probability', 'law']
        """
        rounds = np.arange(self.start, self.start + len(self))
        return data_frame(
            {"round": rounds, **{name: getattr(self, name) for name in _COLUMNS}}, purpose="a trace as a table"
        )

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the columns, with everything else as metadata, to one Parquet file, whole or not at all.

        Parameters
        ----------
        path : where to

        Raises
        ------
        MissingExtraError
            Without pyarrow, which the extra `experiments` brings.

        >>> import driftbandits as db, tempfile
        >>> world = db.environments.create("switching/1", seed=0, horizon=100, switches=(50,))
        >>> trace = db.simulate(db.Uniform(world.arms), world)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trace.to_parquet(f"{folder}/run.parquet")
        ...     bool((Trace.from_parquet(f"{folder}/run.parquet").reward == trace.reward).all())
        True
        """
        pa, pq = _arrow()
        notes = {
            "format": _FORMAT,
            "start": self.start,
            "changes": [dataclasses.asdict(change) for change in self.changes],
            "seconds": self.seconds,
            "policy": self.policy,
            "world": self.world,
            "seed": self.seed,
        }
        metadata = {"driftbandits": json.dumps(notes), "driftbandits.seal": files.BLANK_SEAL}
        table = pa.table({name: getattr(self, name) for name in _COLUMNS}).replace_schema_metadata(metadata)
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
        files.write_whole(path, files.sealed(sink.getvalue().to_pybytes()))

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str]) -> Trace:
        """Read a trace written by `to_parquet`, which has an example.

        Parameters
        ----------
        path : of the file

        Returns
        -------
        Trace

        Raises
        ------
        InputError
            If the file is damaged or something else.
        """
        arrow = _arrow()
        content = Path(path).read_bytes()
        try:
            return cls(**_fields(content, *arrow))
        except Exception as error:  # Arrow raises a dozen kinds of errors at odd bytes
            raise InputError(f"{os.fspath(path)} is not a saved trace, or is damaged: {first_line(error)}") from error


def _fields(content: bytes, pa: Any, pq: Any) -> dict[str, Any]:
    """What a trace is made of, from the content of its file."""
    if not files.seal_holds(content):
        raise ValueError("it has no seal, or its content is not what was written")
    table = pq.read_table(pa.BufferReader(content), page_checksum_verification=True)
    notes = json.loads(table.schema.metadata[b"driftbandits"])
    if notes.pop("format") != _FORMAT:
        raise ValueError(f"it was written by another version; this one reads format {_FORMAT}")
    notes["changes"] = tuple(Change.from_dict(item) for item in notes["changes"])
    columns = {name: np.array(table[name].to_numpy()) for name in _COLUMNS}
    if any(columns[name].dtype != kind for name, kind in _COLUMNS.items()):
        raise ValueError("its columns have other types")
    return {**columns, **notes}


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", extra="experiments", purpose="saving a trace as Parquet") from None
    return pyarrow, pyarrow.parquet


_LONGEST_STRETCH = 65_536  # rounds asked at once, so that memory stays bounded whatever the policy's stretches
_SINGLE_ROUNDS = 64  # before the policy is asked again for how long its law stays


@one_blas_thread
def simulate(
    policy: Policy,
    world: Environment,
    *,
    seed: int = 0,
    rounds: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Trace:
    """Let `policy` play `world`, telling every reward immediately, and record the run.

    The policy is asked for as many rounds as its law is certain to stay the same, so thousands of rounds cost one call;
    the result is the same, decision for decision, as asking round by round. A policy with contexts is given that of
    each request; one without plays the same world blindly. A policy that has already played continues
    at the world's round number `policy.rounds`. In a world that does not always offer every arm the policy is asked
    round by round for one of those offered.

    Parameters
    ----------
    policy, world : over equally many arms; the policy's reward range must hold the world's rewards unless it clips
    seed : of the noise; the same seed gives every policy the same noise in the same round
    rounds : how many to play, by default to the world's end
    progress : called with the number of rounds after every stretch

    Returns
    -------
    Trace

    Raises
    ------
    InputError
        If policy and world do not fit: other numbers of arms, or rewards that may leave the policy's range.
    HorizonError
        For more rounds than the world, or the policy, has.

    >>> import driftbandits as db
    >>> world = db.environments.create("switching/1", seed=0, horizon=500, switches=(250,))
    >>> trace = db.simulate(db.OPKB(world.arms, horizon=500, seed=0), world, seed=0)
    >>> len(trace), bool(trace.regret.min() >= 0)
    (500, True)
    """
    if not isinstance(policy, Policy) or not isinstance(world, Environment):
        raise InputError(f"simulate wants a policy and a world, got {type(policy).__name__} and {type(world).__name__}")
    seed = check_seed(seed)
    start = policy.rounds
    stop = world.horizon if rounds is None else start + check_count("rounds", rounds)
    _check_match(policy, world, start, stop)
    changes_before = policy.changes_found
    begun = time.perf_counter()
    batches: list[Decisions] = []
    rewards: list[Floats] = []
    now = start
    single = world.allowed(start) is not None or policy.contexts is not None
    while now < stop:
        steady = 1 if single else policy.steady_rounds()
        if steady == 1:
            count = min(stop - now, _SINGLE_ROUNDS, max(LARGEST_TABLE // len(world.arms), 1))
            batch, told = _single_rounds(policy, world, seed, now, count)
        else:
            batch = policy.ask(size=min(stop - now, steady, _LONGEST_STRETCH))
            told = world.rewards(now, batch.arms, seed)
            policy.tell(batch.ids, told)
        batches.append(batch)
        rewards.append(told)
        now += len(batch)
        if progress is not None:
            progress(len(batch))
    arms = np.concatenate([batch.arms for batch in batches])
    found = policy.changes_found - changes_before
    return Trace(
        start=start,
        arm=arms.astype(np.int32),
        reward=np.concatenate(rewards),
        regret=world.best(start, len(arms)) - world.means_of(start, arms),
        probability=np.concatenate([batch.probabilities for batch in batches]),
        law=np.concatenate([batch.laws for batch in batches]),
        changes=policy.changes[-found:] if found else (),
        seconds=time.perf_counter() - begun,
        policy=repr(policy),
        world=repr(world),
        seed=seed,
    )


def _single_rounds(policy: Policy, world: Environment, seed: int, start: int, count: int) -> tuple[Decisions, Floats]:
    """Ask and tell `count` rounds one at a time, in plain numbers; the world's part is looked up beforehand."""
    choices: list[Decision] = []
    rewards: list[float] = []
    means, masks, draws = world.means(start, count), world.allowed(start, count), uniforms(seed, start, count)
    numbers = np.arange(len(world.arms))
    requests = None if policy.contexts is None else rows_of(world.requests(start, count))
    for place in range(count):
        allowed = None if masks is None else masks[place]
        choice = policy.ask(allowed=allowed, context=None if requests is None else requests[place])
        here, arm = slice(place, place + 1), choice.arm
        reward = world.observe(start + place, numbers[arm : arm + 1], means[here, arm], draws[here]).item()
        policy.tell(choice.id, reward)
        choices.append(choice)
        rewards.append(reward)
    columns = Decisions(
        ids=np.array([choice.id for choice in choices]),
        arms=np.array([choice.arm for choice in choices]),
        probabilities=np.array([choice.probability for choice in choices]),
        laws=np.array([choice.law for choice in choices]),
    )
    return columns, np.array(rewards)


def _check_match(policy: Policy, world: Environment, start: int, stop: int) -> None:
    if policy.contexts is not None and policy.contexts != world.contexts:
        raise InputError(
            f"the policy has {policy.contexts!r} and the world {world.contexts!r}; build the policy with "
            f"contexts=world.contexts, or without"
        )
    if len(policy.arms) != len(world.arms):
        raise InputError(
            f"the policy has {counted(len(policy.arms), 'arm')} and the world {len(world.arms)}; build both on the same"
        )
    if not start < stop <= world.horizon:
        raise InputError(
            f"the policy stands at round {start} and {stop - start} more are wanted, the world has {world.horizon}; "
            f"build a fresh policy, or a longer world"
        )
    if policy.horizon is not None and policy.horizon < stop:
        raise HorizonError(
            f"the policy ends after {counted(policy.horizon, 'round')} and {stop} are wanted; build it with "
            f"horizon={stop} or None"
        )
    (low, high), (least, most) = policy.reward_range, world.reward_range
    if policy.out_of_range == "error" and (least < low or most > high):
        raise InputError(
            f"rewards of this world lie in ({least:g}, {most:g}), outside the policy's ({low:g}, {high:g}); "
            f"declare that range, pass out_of_range='clip', or use a bounded noise such as TruncatedGaussianNoise"
        )
