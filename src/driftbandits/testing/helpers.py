"""How the conformance suites play a policy, and what they require."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from driftbandits.arms.arm_set import ArmSet
from driftbandits.policies import Policy
from driftbandits.types import Floats, Ints

PolicyFactory = Callable[..., Policy]
ROUNDS = 240


def arms_on_a_line(size: int = 12) -> ArmSet:
    """Arms on a line, twelve unless said otherwise."""
    return ArmSet(np.linspace(0.0, 1.0, size)[:, None], kernel=RBF(0.2))


def reward_of(ids: Ints, arms: Ints) -> Floats:
    """A drifting reward of round and arm only; multiples of 1/64, so that scaling by powers of 2 is exact."""
    wave = np.sin(0.9 * arms + 2.0 * (ids >= ROUNDS // 2)) + 0.3 * np.sin(12.9898 * ids)
    return np.asarray(np.round(48.0 * wave / 1.3) / 64.0)


def one_reward(number: int, arm: int) -> float:
    """`reward_of` one decision."""
    return float(reward_of(np.array([number]), np.array([arm]))[0])


def require(condition: object, message: str) -> None:
    """Fail with this message unless the condition holds."""
    if not condition:
        raise AssertionError(message)


@contextmanager
def raises(kind: type[BaseException]) -> Iterator[None]:
    """Require what is inside to raise an error of this kind, with a message."""
    try:
        yield
    except kind as error:
        require(len(str(error)) > 10, f"{kind.__name__} without a message")
    else:
        raise AssertionError(f"expected {kind.__name__}")


def play(policy: Policy, rounds: int) -> tuple[list[int], list[float]]:
    """Ask and tell round by round; the arms and probabilities."""
    arms, probabilities = [], []
    for _ in range(rounds):
        choice = policy.ask()
        arms.append(choice.arm)
        probabilities.append(choice.probability)
        policy.tell(choice.id, one_reward(choice.id, choice.arm))
    return arms, probabilities


def require_equal(left: Any, right: Any, place: str = "state") -> None:
    """Require two states to be equal bit for bit."""
    if isinstance(left, np.ndarray):
        equal = isinstance(right, np.ndarray) and (left.dtype, left.shape) == (right.dtype, right.shape)
        require(equal and left.tobytes() == right.tobytes(), f"{place} differs")
    elif isinstance(left, dict):
        require(isinstance(right, dict) and set(left) == set(right), f"{place} has other keys")
        for key in left:
            require_equal(left[key], right[key], f"{place}.{key}")
    elif isinstance(left, (list, tuple)):
        require(len(left) == len(right), f"{place} has another length")
        for number, (a, b) in enumerate(zip(left, right, strict=True)):
            require_equal(a, b, f"{place}[{number}]")
    else:
        require(left == right, f"{place} differs: {left!r} and {right!r}")
