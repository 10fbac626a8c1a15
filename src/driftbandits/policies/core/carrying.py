"""How a policy goes on with other arms: its books as they are, its open decisions renumbered, and its hook's part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from driftbandits import state as states
from driftbandits.policies.core import saving
from driftbandits.policies.core.arms_change import ArmsChange, match_arms
from driftbandits.policies.core.renumbered import GONE
from driftbandits.ties import as_first_released

if TYPE_CHECKING:
    from driftbandits.policies.core.base import Policy

Kind = TypeVar("Kind", bound="Policy")


def with_arms(policy: Kind, arms: Any) -> Kind:
    """A policy that goes on where `policy` stands, with these arms; `policy` itself stays as it is."""
    change = match_arms(policy.arms, arms)
    state = saving.export(policy)
    if change.same:
        return saving.restore(type(policy), change.new, state)
    reader = states.Reader({**state, **_books(policy, state, change)})
    with as_first_released(saving.is_of_first_release(policy._provenance)):
        carried = saving.build(type(policy), change.new, reader)
        saving.load_books(carried, reader)
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
