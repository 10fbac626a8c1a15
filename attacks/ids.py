"""A snapshot is restored, and rewards of decisions made after it come in: to which arm do they go?"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from attacks.common import (
    ARM_COUNT,
    AttackRow,
    Options,
    arm_set,
    generator,
    kind_of,
    make,
    play,
    reward,
    said,
    spread,
    total,
)
from driftbandits.errors import UnknownDecisionError
from driftbandits.policies import POLICIES, Policy
from driftbandits.types import Decision

LATE_REWARDS = 100


def run(options: Options) -> Iterator[AttackRow]:
    """All policies, by decision and by bare id."""
    labels = {
        "late Decision after a restore": decisions,
        "late Decisions batch after a restore": batches,
        "own Decision, nothing restored": control,
        "late bare id after a restore (documented risk)": bare_ids,
    }
    tasks = [(name, trial, options.seed) for name in POLICIES for trial in range(options.tries(5, 1))]
    for label, attack in labels.items():
        yield total(label, spread(attack, tasks, options))


def decisions(name: str, trial: int, seed: int) -> AttackRow:
    """Each late reward told with its Decision: refused, unless the restored policy decided the very same."""
    return _late(name, trial, seed, by_id=False)


def bare_ids(name: str, trial: int, seed: int) -> AttackRow:
    """Each late reward told with its id, which is trusted."""
    return _late(name, trial, seed, by_id=True)


def _late(name: str, trial: int, seed: int, *, by_id: bool) -> AttackRow:
    row = AttackRow(name)
    restored, own, late = _two_pasts(name, trial, seed)
    for decision, mine in zip(late, own, strict=True):
        value = reward(restored, decision.id, decision.arm)
        try:
            restored.tell(decision.id if by_id else decision, value)
        except UnknownDecisionError:
            row.add("refused", bad=decision == mine, example=f"{name}: {decision} is the restored policy's own")
        except Exception as error:
            row.add("Decision not accepted", bad=True, example=f"{name}: {said(error)}")
        else:
            if decision.arm != mine.arm:
                row.add("credited to another arm", bad=not by_id, example=f"{name}: {decision} told for {mine}")
            else:
                row.add("same arm")
    return row


def batches(name: str, trial: int, seed: int) -> AttackRow:
    """All late rewards in one call."""
    row = AttackRow(name)
    restored, own, late = _two_pasts(name, trial, seed)
    wrong = sum(a.arm != b.arm for a, b in zip(late, own, strict=True))
    outcome = _tell(restored, late)
    bad = outcome == "taken" and wrong > 0
    row.add(f"{outcome}, of another past" if wrong else outcome, bad=bad or outcome not in ("taken", "refused"))
    row.note("decisions of another arm among them", times=wrong)
    return row


def control(name: str, trial: int, seed: int) -> AttackRow:
    """Decisions that are open are taken, singly, as a list, and as a batch."""
    row = AttackRow(name)
    policy = make(name, seed=trial + seed)
    play(policy, 30)
    single, several, batch = policy.ask(), [policy.ask() for _ in range(3)], policy.ask(size=5)
    calls: dict[str, Callable[[], object]] = {
        "Decision": lambda: policy.tell(single, 0.25),
        "list": lambda: policy.tell(several, [0.25] * 3),
        "Decisions": lambda: policy.tell(batch, np.full(5, 0.25)),
    }
    for what, call in calls.items():
        try:
            call()
        except Exception as error:
            row.add("not accepted", bad=True, example=f"{name}, {what}: {said(error)}")
        else:
            row.add("taken")
    return row


def _tell(policy: Policy, late: list[Decision]) -> str:
    try:
        policy.tell(late, [reward(policy, decision.id, decision.arm) for decision in late])
    except UnknownDecisionError:
        return "refused"
    except Exception as error:
        return f"raised {kind_of(error)}"
    return "taken"


def _two_pasts(name: str, trial: int, seed: int) -> tuple[Policy, list[Decision], list[Decision]]:
    """A restored policy, its open decisions, and those of the run it was restored from, under the same ids."""
    rng = generator("ids", name, trial, seed)
    policy = make(name, seed=int(rng.integers(1000)))
    play(policy, int(rng.integers(20, 200)))
    restored = type(policy).restore(arm_set(), policy.state_dict())
    return restored, _half_told(restored, rng, masked=True), _half_told(policy, rng, masked=False)


def _half_told(policy: Policy, rng: np.random.Generator, *, masked: bool) -> list[Decision]:
    """LATE_REWARDS decisions without a reward; after each, another is told a reward drawn at random."""
    late = []
    for _ in range(LATE_REWARDS):
        told = policy.ask()
        policy.tell(told.id, float(rng.uniform(-1, 1)))
        late.append(policy.ask(allowed=list(range(3, ARM_COUNT)) if masked else None))
    return late
