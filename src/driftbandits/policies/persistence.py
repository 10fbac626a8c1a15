"""A whole policy as a saved state, and back; also with other arms.

A whole policy as a saved state, and back: the books that every policy keeps, and what its own hooks add.

Part of `Policy`, whose private books it reads and writes; `state` says how states are read, checked and kept in files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from driftbandits import machine
from driftbandits import state as states
from driftbandits.arms import ArmSet
from driftbandits.blas_threads import one_blas_thread
from driftbandits.errors import InputError, StateError
from driftbandits.gauge import Gauge
from driftbandits.policies.algorithm import FIRST_HORIZON
from driftbandits.policies.arm_migration import ArmsChange, match_arms
from driftbandits.policies.decisions import GONE, ROW, Line, Renumbered
from driftbandits.policies.rewards import Spread
from driftbandits.seeding import generator_from_state, generator_state
from driftbandits.showing import label, shown
from driftbandits.state.plausible import FARTHEST, check_phase
from driftbandits.ties import as_first_released
from driftbandits.version import __version__

if TYPE_CHECKING:
    from driftbandits.policies.base import Policy


Kind = TypeVar("Kind", bound="Policy")
MOST_MACHINES = 20  # named in a state, the latest


def export(policy: Policy) -> dict[str, Any]:
    """Everything needed to go on bit for bit: JSON values and arrays."""
    return {
        "format": states.FORMAT,
        "library": __version__,
        "provenance": provenance(policy),
        "policy": type(policy).__name__,
        "arms": policy.arms.fingerprint(),
        "gauge": policy.arms.gauge.export() if policy.arms.follows else None,
        "options_gauge": _options_gauge(policy.arms),
        "horizon": policy.horizon,
        "seed": policy.seed,
        "reward_range": list(policy.reward_range),
        "out_of_range": policy.out_of_range,
        "pending_limit": policy._pending.limit,
        "order": policy.order,
        "patience": policy.patience,
        "missing": policy.missing,
        "settings": policy._settings(),
        "rounds": policy.rounds,
        "clipped": policy.clipped,
        "forgotten": policy.forgotten,
        "late": policy.late,
        "expired": policy.expired,
        "dropped": policy._pending.dropped,
        "version": policy._version,
        "phase_start": policy._phase_start,
        "phase_length": policy._phase_length,
        "draws": generator_state(policy._draws),
        "pending": policy._pending.rows(),
        "renumbered": policy._renumbered.export(),
        "held": policy._line.export(),
        "delays": policy._delays.export(),
        "spread": policy._spread.export(),
        "plays": policy._plays.export(),
        "history": policy._history.export(),
        "zero_one": policy._zero_one.export(),
        **policy._change_log.export(),
        "engine": _engine(policy) if policy._phase_length else None,
    }


def provenance(policy: Policy) -> list[list[Any]]:
    """On which machines, and by which `behaviour`, what is in the policy was computed; the present ones come last."""
    now = [policy.behaviour, machine.fingerprint()]
    return [*(one for one in policy._provenance if one != now), now][-MOST_MACHINES:]


def _read_provenance(reader: states.Reader) -> list[list[Any]]:
    """As it was written; a state is never refused because of what is said of the machine."""
    if not reader.has("provenance"):
        return [[0, f"a machine that driftbandits {label(reader.text('library'))} did not note"]]
    written = reader.raw("provenance")
    listed = written if isinstance(written, (list, tuple)) else [written]
    return [list(one) if _is_note(one) else [None, f"an unknown machine: {shown(one)}"] for one in listed]


def is_of_first_release(provenance: list[list[Any]]) -> bool:
    """Whether a state began in 0.3.0, which did not say what wrote it."""
    return any(one[0] == 0 for one in provenance)


def _is_note(one: Any) -> bool:
    return isinstance(one, (list, tuple)) and len(one) == 2 and isinstance(one[0], int) and isinstance(one[1], str)


def _engine(policy: Policy) -> dict[str, Any]:
    engine = policy._export()
    if not isinstance(engine, dict):
        raise StateError(
            f"_export of {type(policy).__name__} gave {shown(engine)}; it must give a dict of JSON values and arrays"
        )
    return engine


@one_blas_thread
def restore(kind: type[Kind], arms: ArmSet, state: Mapping[str, Any]) -> Kind:
    """A policy of this kind that goes on from `state`; StateError says what does not fit."""
    reader = states.Reader(state)
    states.check_format(reader)
    if reader.text("policy") != kind.__name__:
        raise StateError(f"state is one of {label(reader.text('policy'))}, not of {kind.__name__}")
    if not isinstance(arms, ArmSet):
        raise InputError(f"restore and load want the ArmSet first, got {type(arms).__name__}")
    measured = _measured(arms, reader)
    if reader.text("arms") != measured.fingerprint():
        raise StateError("state belongs to other arms; restore it with the points, kernel and names it was made with")
    with as_first_released(is_of_first_release(_read_provenance(reader))):
        policy = _build(kind, measured, reader)
        load_books(policy, reader)
        if policy._phase_length:
            policy._import(reader.reader("engine"))
    return policy


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


def _options_gauge(arms: ArmSet) -> dict[str, Any] | None:
    """How the options of pairs are measured, where others came before them."""
    follows = arms.crossing is not None and arms.crossing.options.follows
    return arms.crossing.options.gauge.export() if follows else None  # type: ignore[union-attr]


def build(kind: type[Kind], arms: ArmSet, reader: states.Reader) -> Kind:
    """A new policy with the settings in the state."""
    return kind(
        arms,
        horizon=reader.raw("horizon"),
        seed=reader.raw("seed"),
        reward_range=reader.raw("reward_range"),
        out_of_range=reader.raw("out_of_range"),
        pending_limit=reader.raw("pending_limit"),
        order=reader.raw("order"),
        patience=reader.raw("patience"),
        missing=reader.raw("missing"),
        **kind._read_settings(reader.raw("settings")),
    )


def _build(kind: type[Kind], arms: ArmSet, reader: states.Reader) -> Kind:
    reader.reader("settings")  # a mapping, whatever it holds
    try:
        return build(kind, arms, reader)
    except (TypeError, KeyError, ValueError, AttributeError) as error:  # an InputError is a ValueError
        raise StateError(f"the settings in the state are not usable: {error}") from error


def load_books(policy: Policy, reader: states.Reader) -> None:
    """Take from the state what every policy keeps; what its hooks have exported is left."""
    policy._provenance = _read_provenance(reader)
    policy.rounds = reader.integer("rounds", high=FARTHEST if policy.horizon is None else policy.horizon)
    for name in ("clipped", "forgotten", "late", "expired"):
        setattr(policy, name, reader.integer(name, high=FARTHEST))
    policy._version = reader.integer("version", high=FARTHEST)
    policy._phase_start = reader.integer("phase_start", high=policy.rounds)
    policy._phase_length = reader.integer("phase_length")
    begun = bool(policy._phase_length)
    states.check(begun == (reader.raw("engine") is not None), "phase_length")
    check_phase(
        rounds=policy.rounds,
        start=policy._phase_start,
        length=policy._phase_length,
        horizon=policy.horizon,
        first=FIRST_HORIZON if policy.needs_horizon else None,
    )
    policy._draws = generator_from_state(reader.raw("draws"))
    rows = reader.array("pending", ROW, (None,))
    _check_rows(rows, rounds=policy.rounds, arms=len(policy.arms))
    policy._pending.load(rows, reader.integer("dropped", high=FARTHEST))
    size = len(policy.arms)
    policy._line = Line.load(reader.reader("held"), rounds=policy.rounds, arms=size, pending=rows)
    states.check(policy.order == "asked" or not len(policy._line), "held rewards")
    policy._delays.load(reader.reader("delays"), rounds=policy.rounds, arms=size)
    policy._spread = Spread.load(reader.reader("spread"))
    policy._renumbered = Renumbered.load(reader.reader("renumbered"), rounds=policy.rounds)
    policy._plays.load(reader.reader("plays"), rounds=policy.rounds)
    policy._history.load(reader.reader("history"), rounds=policy.rounds)
    policy._zero_one.load(reader.reader("zero_one"))
    policy._change_log.load(reader)


def _check_rows(rows: npt.NDArray[np.void], *, rounds: int, arms: int) -> None:
    """Refuse open decisions that were never made."""
    ids, p = rows["id"], rows["probability"]
    if len(ids) and not ((np.diff(ids) > 0).all() and ids[0] >= 0 and ids[-1] < rounds):
        raise StateError("state.pending has ids out of order or beyond the rounds asked")
    if ((rows["arm"] < GONE) | (rows["arm"] >= arms)).any() or not ((p > 0) & (p <= 1 + 1e-9)).all():
        raise StateError("state.pending has unknown arms or probabilities outside (0, 1]")


def with_arms(policy: Kind, arms: Any) -> Kind:
    """A policy that goes on where `policy` stands, with these arms; `policy` itself stays as it is."""
    change = match_arms(policy.arms, arms)
    state = export(policy)
    if change.same:
        return restore(type(policy), change.new, state)
    reader = states.Reader({**state, **_books(policy, state, change)})
    with as_first_released(is_of_first_release(policy._provenance)):
        carried = build(type(policy), change.new, reader)
        load_books(carried, reader)
        carried._renumbered.add(policy.rounds, change.target)
        carried._renumbered.forget(carried._pending.oldest())
        carried._version += 1  # another law, and so another number
        if carried._phase_length:
            carried._carry(policy, change)
    return carried


def _books(policy: Policy, state: dict[str, Any], change: ArmsChange) -> dict[str, Any]:
    """Those parts of the state that name arms, with the new numbers."""
    held, delays = state["held"], state["delays"]
    return {
        "pending": _decisions(policy, state["pending"], change),
        "held": {**held, "rows": _decisions(policy, held["rows"], change)},
        "delays": {**delays, "rows": _sampled(delays["rows"], change)},
        "plays": policy._plays.rearranged(change.source).export(),
        "history": policy._history.rearranged(change.source).export(),
    }


def _decisions(policy: Policy, rows: npt.NDArray[np.void], change: ArmsChange) -> npt.NDArray[np.void]:
    """Decisions that may still be learned from, with new numbers of arms, in their tags too if these name arms."""
    renumbered = _renumbered(rows, change)
    renumbered["tag"] = policy._carried_tags(rows["tag"], change)
    return renumbered


def _sampled(rows: npt.NDArray[np.void], change: ArmsChange) -> npt.NDArray[np.void]:
    """Rewards whose delays are kept: an arm that is gone has a number of its own below 0, its rewards stay together."""
    renumbered = _renumbered(rows, change)
    gone = (rows["arm"] >= 0) & (renumbered["arm"] == GONE)
    lowest = min(int(rows["arm"].min(initial=0)), 0)
    renumbered["arm"][gone] = lowest - 1 - np.unique(rows["arm"][gone], return_inverse=True)[1]
    return renumbered


def _renumbered(rows: npt.NDArray[np.void], change: ArmsChange) -> npt.NDArray[np.void]:
    """Decisions with the new numbers of their arms; an arm that was gone before stays so."""
    renumbered = rows.copy()
    offered = rows["arm"] >= 0
    renumbered["arm"][offered] = change.target[rows["arm"][offered]]
    return renumbered
