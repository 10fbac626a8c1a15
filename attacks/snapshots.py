"""Policies in the middle of a run, to be taken up again and again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attacks.common import HORIZON, arm_set, make, play
from driftbandits.policies import POLICIES, Policy
from driftbandits.types import Decision

STATES_PER_POLICY = 25


@dataclass(frozen=True)
class Snapshot:
    """A policy in the middle of a run, as a state, a file, and the decisions still without a reward."""

    name: str
    state: dict[str, Any]
    file: bytes
    open: tuple[Decision, ...]

    def policy(self) -> Policy:
        """The policy again."""
        return POLICIES[self.name].restore(arm_set(), self.state)


def snapshots(name: str, rng: np.random.Generator, folder: Path) -> list[Snapshot]:
    """States of a policy at random rounds, with rewards missing, some of them without a horizon."""
    return [_snapshot(name, rng, folder, waiting=(0, 1, 6)[number % 3]) for number in range(STATES_PER_POLICY)]


def _snapshot(name: str, rng: np.random.Generator, folder: Path, *, waiting: int) -> Snapshot:
    policy = make(name, horizon=HORIZON if rng.random() < 0.5 else None, seed=int(rng.integers(1000)))
    play(policy, int(rng.integers(0, 300)))
    decisions = tuple(policy.ask() for _ in range(waiting))
    path = folder / "snapshot"
    policy.save(path)
    return Snapshot(name, policy.state_dict(), path.read_bytes(), decisions)
