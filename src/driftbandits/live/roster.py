"""The arms of an experiment by number and name, and how the policy's arms stand for them.

An entry keeps its number for good, retired or not. A policy knows all entries, or the active ones alone; with segments
every entry that it knows is one of its arms per segment, segment after segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from driftbandits.arms import ArmSet
from driftbandits.errors import InputError
from driftbandits.live.definition import Definition
from driftbandits.live.entries import Entry, number_of
from driftbandits.policies import Policy, find_policy
from driftbandits.showing import shown
from driftbandits.types import Bools, Floats


class Roster:
    """Entries, and which of them the arms of `policy` are."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.entries = [Entry(option) for option in definition.arms]
        self.fallback = definition.fallback
        self.policy: Policy | None = None
        self.numbers = np.zeros(0, dtype=np.int64)  # of the entries that the policy knows, in the order of its arms
        self.places: dict[int, int] = {}  # of these in that order, by number
        self.number_arms()

    # --- entries ------------------------------------------------------------------------------------------------

    def number_arms(self) -> None:
        """After entries or the policy have changed: find out again what is which."""
        self._known = {entry.option.name: number for number, entry in enumerate(self.entries)}
        self._active = np.array([not entry.retired for entry in self.entries])
        if self.policy is not None:
            arms = self.policy.arms
            inner = arms if arms.crossing is None else arms.crossing.options
            self.numbers = np.array([self._known[name] for name in inner.names or ()])
            self.places = {number: place for place, number in enumerate(self.numbers.tolist())}

    def active(self) -> Bools:
        """Which entries may be decided for."""
        return self._active.copy()

    def name_of(self, number: int) -> str:
        """Name of an entry."""
        return self.entries[number].option.name

    def segment_number(self, segment: str | None) -> int:
        """Number of a segment; 0 where there are none."""
        return 0 if segment is None else [item.name for item in self.definition.segments or ()].index(segment)

    # --- what a request may be decided for ----------------------------------------------------------------------

    def read_request(self, allowed: Any, segment: Any) -> tuple[Bools, dict[str, Any]]:
        """Which entries may be decided for, and what of the request is journaled."""
        details: dict[str, Any] = {}
        if allowed is not None:
            if isinstance(allowed, (str, bytes)) or not isinstance(allowed, Iterable):
                raise InputError(f"allowed must be a list of names of arms, got {shown(allowed)}")
            details["allowed"] = sorted({number_of(self._known, name) for name in allowed})
        mask = self.mask_of(details)
        if not mask.any():
            empty = allowed is not None and not details["allowed"]
            why = "allowed is empty; leave it out to allow all" if empty else "all that are allowed are retired"
            raise InputError(f"no arm is left to decide for: {why}")
        known = None if self.definition.segments is None else [item.name for item in self.definition.segments]
        if known is None and segment is not None:
            raise InputError(f"this experiment has no segments, got segment={shown(segment)}")
        if known is not None and segment not in known:
            raise InputError(f"segment must be one of {', '.join(map(shown, known[:20]))}, got {shown(segment)}")
        if segment is not None:
            details["segment"] = segment
        return mask, details

    def mask_of(self, details: Mapping[str, Any]) -> Bools:
        """Which entries a decision with this payload can be for."""
        if "allowed" not in details:
            return self._active
        mask = np.zeros(len(self._active), dtype=np.bool_)
        mask[details["allowed"]] = True
        mask &= self._active
        return mask

    def stand_ins(self, mask: Bools) -> list[int]:
        """What the fallback chooses from: the arm named for it, if it may be played, or all that may."""
        named = None if self.fallback is None else self._known.get(self.fallback)
        return [named] if named is not None and mask[named] else np.flatnonzero(mask).tolist()

    # --- arms of the policy -------------------------------------------------------------------------------------

    def build_arms(self) -> ArmSet:
        """The arms for the policy: all entries, or the active ones where masked rounds teach it nothing."""
        drops = not (self.policy or find_policy(self.definition.policy))._counts_masked
        numbers = [number for number, entry in enumerate(self.entries) if not (drops and entry.retired)]
        return self.definition.build_arms([self.entries[number].option for number in numbers], numbers)

    def policy_mask(self, mask: Bools, segment: str | None) -> Bools | None:
        """`mask` over the entries as one over the policy's arms; None if nothing is forbidden."""
        here = mask[self.numbers]
        if segment is not None and self.policy is not None:
            here = np.tile(here, len(self.definition.segments or ())) & self.policy.arms.of(segment)
        return None if here.all() else here

    def entry_of(self, arm: int) -> int:
        """Number of the entry that an arm of the policy stands for."""
        return int(self.numbers[arm % len(self.numbers)])

    def arm_of(self, number: int, segment: str | None) -> int:
        """The policy's arm for an entry."""
        return self.places[number] + self.segment_number(segment) * len(self.numbers)

    def of_segment(self, column: Floats, segment: str | None) -> Floats:
        """A column of the policy's arms, those of a segment alone where there are segments."""
        size, place = len(self.numbers), self.segment_number(segment)
        return column[place * size : (place + 1) * size]
