"""A whole policy as a saved state, and back; also with other arms.

`Persistence` is the part of `Policy` that writes and reads what every policy keeps, and hands the rest to `_export` and
`_import` of its algorithm. The package `state` says how states are read, checked and kept in files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from driftbandits import state as states
from driftbandits._util import machine
from driftbandits._util.checks import check_count, check_path
from driftbandits._util.guard import guarded, one_blas_thread
from driftbandits._util.linalg import as_first_released
from driftbandits._util.seeding import generator_from_state, generator_state
from driftbandits.arms.arm_set import ArmSet
from driftbandits.arms.scaling import Gauge
from driftbandits.errors import InputError, StateError
from driftbandits.policies.algorithm import FIRST_HORIZON, Algorithm
from driftbandits.policies.arm_migration import ArmsChange, match_arms
from driftbandits.policies.decisions import GONE, ROW, Renumbered, ReorderBuffer
from driftbandits.policies.inputs import COMMON_SETTINGS
from driftbandits.policies.records import HistoryLog, Plays
from driftbandits.policies.rewards import RewardMonitor
from driftbandits.state.reader import FARTHEST, check_phase
from driftbandits.text import label, shown
from driftbandits.version import __version__

MOST_MACHINES = 20  # named in a state, the latest
_COUNTERS = ("clipped", "forgotten", "late", "expired")


class Persistence(Algorithm):
    """The part of `Policy` that saves and restores it."""

    reward_range: tuple[float, float]
    out_of_range: Literal["error", "clip"]
    patience: int | None
    missing: float | Literal["forget"] | None
    clipped: int
    forgotten: int
    expired: int
    _provenance: list[list[Any]]  # machines and behaviours before this one, where a state was read
    _draws: np.random.Generator
    _renumbered: Renumbered
    _monitor: RewardMonitor
    _plays: Plays
    _history: HistoryLog

    @guarded
    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on bit for bit.

        Returns
        -------
        dict
            JSON values and arrays, no pickle; `restore` takes it.

        >>> from driftbandits import ArmSet, Uniform
        >>> policy = Uniform(ArmSet([[0.0], [1.0]]), seed=0)
        >>> twin = Uniform.restore(policy.arms, policy.state_dict())
        >>> twin.ask() == policy.ask()
        True
        """
        return self._state()

    @classmethod
    @one_blas_thread
    def restore(cls, arms: ArmSet, state: Mapping[str, Any]) -> Self:
        """Restore a policy that continues from `state` exactly as the original would have.

        Parameters
        ----------
        arms : those that the policy was built with; the state holds their fingerprint, not the arms
        state : what `state_dict` gave

        Returns
        -------
        Policy
            Of this class.

        Raises
        ------
        StateError
            If anything in the state does not fit; it is checked whole before anything is built.
        """
        reader = states.Reader(state)
        states.check_format(reader)
        if reader.text("policy") != cls._kind():
            raise StateError(f"state is one of {label(reader.text('policy'))}, not of {cls._kind()}")
        if not isinstance(arms, ArmSet):
            raise InputError(f"restore and load want the ArmSet first, got {type(arms).__name__}")
        measured = _measured(arms, reader)
        if reader.text("arms") != measured.fingerprint():
            raise StateError(
                "state belongs to other arms; restore it with the points, kernel and names it was made with"
            )
        with as_first_released(_is_of_first_release(_read_provenance(reader))):
            reader.reader("settings")  # a mapping, whatever it holds
            try:
                policy = cls._from_settings(measured, reader)
            except (TypeError, KeyError, ValueError, AttributeError) as error:  # an InputError is a ValueError
                raise StateError(f"the settings in the state are not usable: {error}") from error
            policy._load_common(reader)
            if policy._phase_length:
                policy._import(reader.reader("engine"))
        return policy

    @guarded
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to one file: to the side, read back and restored from, and only then put in its place.

        Parameters
        ----------
        path : of the file; an existing one is replaced

        Raises
        ------
        OSError
            If the file cannot be written, or does not read back as it was written; what was there before stays.

        >>> import tempfile
        >>> from driftbandits import ArmSet, Uniform
        >>> policy = Uniform(ArmSet([[0.0], [1.0]]), seed=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     policy.save(f"{folder}/policy.state")
        ...     twin = Uniform.load(policy.arms, f"{folder}/policy.state")
        >>> twin.ask() == policy.ask()
        True
        """
        check_path("save wants a path", path)
        states.write(path, self._state(), check=partial(type(self).restore, self.arms))

    @classmethod
    def load(cls, arms: ArmSet, path: str | os.PathLike[str], *, limit: int | None = states.LIMIT) -> Self:
        """Restore a policy from a file written by `save`.

        Parameters
        ----------
        arms : those that the policy was built with
        path : of the file
        limit : most bytes that the state may take, for untrusted files; None for any

        Returns
        -------
        Policy
            Of this class, as `save` found it.

        Raises
        ------
        StateError
            If the file is no saved policy, is damaged or too large, or does not fit the class or the arms.
        OSError
            If it cannot be read.
        """
        check_path("load wants the arms and then a path", path)
        if limit is not None:
            check_count("limit", limit, cure="None reads a file of any size")
        return cls.restore(arms, states.read(path, limit=limit))

    @guarded
    def with_arms(self, arms: ArmSet) -> Self:
        """A policy of the same class that continues from this one with other arms; this one is unchanged.

        Arms are the same if their names are, or their points where there are no names. Kept arms keep what is known of
        them, new ones get what the kernel says given the rest; policies that cannot start anew and record that in
        `changes`. Rounds, ids, counters and streams of random numbers go on. Decisions asked before may be told and
        forgotten after; rewards of arms that are gone are counted in `late` and change nothing.

        The arms are measured as before: kernel, length scale and `scale` stay what the first set made them, whatever
        distances the new arms have.

        Parameters
        ----------
        arms : the arms from now on, usually made from the present ones by `extended`, `without` or `with_points`

        Returns
        -------
        Policy
            Of this class, with this one's settings.

        Raises
        ------
        InputError
            For arms of other dimensions or with another kernel, for a name that stood for another point, and if none of
            the arms was there before.

        >>> from driftbandits import GPUCB
        >>> policy = GPUCB(ArmSet([[0.0], [1.0]], names=["low", "high"]))
        >>> policy.tell(policy.ask(), 0.3)
        >>> wider = policy.with_arms(policy.arms.extended([[0.5]], names=["mid"]))
        >>> wider.rounds, wider.arms.names
        (1, ('low', 'high', 'mid'))
        """
        change = match_arms(self.arms, arms)
        state = self._state()
        if change.same:
            return self.restore(change.new, state)
        reader = states.Reader({**state, **self._renumbered_parts(state, change)})
        with as_first_released(_is_of_first_release(self._provenance)):
            moved = self._from_settings(change.new, reader)
            moved._load_common(reader)
            moved._renumbered.add(self.rounds, change.target)
            moved._renumbered.forget(moved._pending.oldest())
            moved._version += 1  # another law, and so another number
            if moved._phase_length:
                moved._carry(self, change)
        return moved

    def __copy__(self) -> Self:
        """A policy of its own that goes on from here, made through the state; the arms are shared."""
        return self.restore(self.arms, self.state_dict())

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """As `copy`: arms never change."""
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.arms, self.state_dict())

    # --- writing ------------------------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        """Everything needed to go on bit for bit: JSON values and arrays."""
        arms, options = self.arms, None if self.arms.crossing is None else self.arms.crossing.options
        return {
            "format": states.FORMAT,
            "library": __version__,
            "provenance": self._all_provenance(),
            "policy": self._kind(),
            "arms": arms.fingerprint(),
            "gauge": arms.gauge.export() if arms.follows else None,
            "options_gauge": options.gauge.export() if options is not None and options.follows else None,
            "horizon": self.horizon,
            "seed": self.seed,
            "reward_range": list(self.reward_range),
            "out_of_range": self.out_of_range,
            "pending_limit": self._pending.limit,
            "order": self.order,
            "patience": self.patience,
            "missing": self.missing,
            "settings": self._settings(),
            "rounds": self.rounds,
            **{name: getattr(self, name) for name in _COUNTERS},
            "dropped": self._pending.dropped,
            "version": self._version,
            "phase_start": self._phase_start,
            "phase_length": self._phase_length,
            "draws": generator_state(self._draws),
            "pending": self._pending.rows(),
            "renumbered": self._renumbered.export(),
            "held": self._held.export(),
            "plays": self._plays.export(),
            "history": self._history.export(),
            **self._monitor.export(),
            **self._change_log.export(),
            "engine": self._engine() if self._phase_length else None,
        }

    def _all_provenance(self) -> list[list[Any]]:
        """On which machines, and by which `behaviour`, what is in the policy was computed; the present ones last."""
        now = [self.behaviour, machine.fingerprint()]
        others = [one for one in self._provenance if one != now]
        first = others[:1] if _is_of_first_release(others[:1]) else []  # says which features the state is written in
        return [*first, *others[len(first) :][len(first) + 1 - MOST_MACHINES :], now]

    def _engine(self) -> dict[str, Any]:
        engine = self._export()
        if not isinstance(engine, dict):
            raise StateError(
                f"_export of {type(self).__name__} gave {shown(engine)}; it must give a dict of JSON values and arrays"
            )
        return engine

    def _renumbered_parts(self, state: dict[str, Any], change: ArmsChange) -> dict[str, Any]:
        """Those parts of the state that name arms, with the new numbers."""
        held, delays = state["held"], state["delays"]
        return {
            "pending": self._renumbered_decisions(state["pending"], change),
            "held": {**held, "rows": self._renumbered_decisions(held["rows"], change)},
            "delays": {**delays, "rows": change.renumbered_sample(delays["rows"])},
            "plays": self._plays.rearranged(change.source).export(),
            "history": self._history.rearranged(change.source).export(),
        }

    def _renumbered_decisions(self, rows: npt.NDArray[np.void], change: ArmsChange) -> npt.NDArray[np.void]:
        """Decisions that may still be learned from, with new numbers of arms, in their tags too if these name arms."""
        renumbered = change.renumbered_rows(rows)
        renumbered["tag"] = self._carried_tags(rows["tag"], change)
        return renumbered

    # --- reading ------------------------------------------------------------------------------------------------

    @classmethod
    def _kind(cls) -> str:
        """What states call the class."""
        return cls.__name__

    @classmethod
    def _from_settings(cls, arms: ArmSet, reader: states.Reader) -> Self:
        """A new policy with the settings in the state."""
        common = {name: reader.raw(name) for name in COMMON_SETTINGS}
        return cls(arms, **common, **cls._read_settings(reader.raw("settings")))

    def _load_common(self, reader: states.Reader) -> None:
        """Take from the state what every policy keeps; what its algorithm has exported is left."""
        self._provenance = _read_provenance(reader)
        self.rounds = reader.integer("rounds", high=FARTHEST if self.horizon is None else self.horizon)
        for name in _COUNTERS:
            setattr(self, name, reader.integer(name, high=FARTHEST))
        self._version = reader.integer("version", high=FARTHEST)
        self._phase_start = reader.integer("phase_start", high=self.rounds)
        self._phase_length = reader.integer("phase_length")
        states.check(bool(self._phase_length) == (reader.raw("engine") is not None), "phase_length")
        check_phase(
            rounds=self.rounds,
            start=self._phase_start,
            length=self._phase_length,
            horizon=self.horizon,
            first=FIRST_HORIZON if self.needs_horizon else None,
        )
        self._draws = generator_from_state(reader.raw("draws"))
        rows, size = reader.array("pending", ROW, (None,)), len(self.arms)
        _check_rows(rows, rounds=self.rounds, arms=size)
        self._pending.load(rows, reader.integer("dropped", high=FARTHEST))
        self._held = ReorderBuffer.load(reader.reader("held"), rounds=self.rounds, arms=size, pending=rows)
        states.check(self.order == "asked" or not len(self._held), "held rewards")
        self._monitor.load(reader, rounds=self.rounds, arms=size)
        self._renumbered = Renumbered.load(reader.reader("renumbered"), rounds=self.rounds)
        self._plays.load(reader.reader("plays"), rounds=self.rounds)
        self._history.load(reader.reader("history"), rounds=self.rounds)
        self._change_log.load(reader)


def _restore(kind: type[Persistence], arms: ArmSet, state: Mapping[str, Any]) -> Persistence:
    return kind.restore(arms, state)


def _read_provenance(reader: states.Reader) -> list[list[Any]]:
    """As it was written; a state is never refused because of what is said of the machine."""
    if not reader.has("provenance"):
        return [[0, f"a machine that driftbandits {label(reader.text('library'))} did not note"]]
    written = reader.raw("provenance")
    listed = written if isinstance(written, (list, tuple)) else [written]
    return [list(one) if _is_note(one) else [None, f"an unknown machine: {shown(one)}"] for one in listed]


def _is_note(one: Any) -> bool:
    return isinstance(one, (list, tuple)) and len(one) == 2 and isinstance(one[0], int) and isinstance(one[1], str)


def _is_of_first_release(provenance: list[list[Any]]) -> bool:
    """Whether a state began in 0.3.0, which did not say what wrote it."""
    return any(one[0] == 0 for one in provenance)


def _measured(arms: ArmSet, reader: states.Reader) -> ArmSet:
    """The arms as the state's policy measured them, where others came before them."""
    if reader.raw("gauge") is not None:
        arms = arms.gauged(Gauge.load(reader.reader("gauge"), dimension=arms.dimension))
    elif arms.follows:
        raise StateError("state belongs to arms that came first, and these are measured as others; build an ArmSet")
    if reader.raw("options_gauge") is None:
        return arms
    states.check(arms.crossing is not None, "options_gauge")
    options = arms.crossing.options  # type: ignore[union-attr]
    return arms.options_gauged(Gauge.load(reader.reader("options_gauge"), dimension=options.dimension))


def _check_rows(rows: npt.NDArray[np.void], *, rounds: int, arms: int) -> None:
    """Refuse open decisions that were never made."""
    ids, p = rows["id"], rows["probability"]
    if len(ids) and not ((np.diff(ids) > 0).all() and ids[0] >= 0 and ids[-1] < rounds):
        raise StateError("state.pending has ids out of order or beyond the rounds asked")
    if ((rows["arm"] < GONE) | (rows["arm"] >= arms)).any() or not ((p > 0) & (p <= 1 + 1e-9)).all():
        raise StateError("state.pending has unknown arms or probabilities outside (0, 1]")
