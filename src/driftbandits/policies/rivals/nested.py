"""A policy played inside another: how MASTER and BOB find, build, drive and save their base.

The outer policy declares the inner one's law as its own and draws with its own generator, which the inner shares. What
was drawn and what was told reaches the inner through the hooks of `Policy`, on the internal scale of rewards and with
rounds counted from the inner's own start: it cannot tell that it is not alone.
"""

from __future__ import annotations

import inspect
import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

import numpy as np

from driftbandits import state as states
from driftbandits.errors import InputError, StateError
from driftbandits.policies.base import Policy
from driftbandits.policies.decisions import Row
from driftbandits.policies.inputs import COMMON_SETTINGS
from driftbandits.policies.window import WindowedPolicy
from driftbandits.state.reader import FARTHEST
from driftbandits.types import Bools, Floats, Ints

Inner = TypeVar("Inner", bound=Policy)

_LIBRARY = __name__.split(".")[0] + "."  # how the modules of the library's own policies begin


def find_base(base: Any, kind: type[Inner]) -> type[Inner]:
    """The class called `base`, or `base` itself: a usable policy class of this `kind`.

    A name is looked up among the classes of this kind defined so far: those of the library first (importing
    driftbandits defines them all), then yours, the latest first. So a state with a base of your own can be restored
    once its class is defined.
    """
    found = _by_name(base, kind) if isinstance(base, str) else base
    if not (isinstance(found, type) and issubclass(found, kind)) or inspect.isabstract(found):
        wanted = "a policy class or its name" if kind is Policy else f"a class of {kind.__name__} or its name"
        raise InputError(f"base must be {wanted}, got {base!r}")
    return found


def _by_name(name: str, kind: type[Policy]) -> type[Policy] | None:
    found = [below for below in _subclasses(kind) if below.__name__ == name]
    own = [below for below in found if below.__module__.startswith(_LIBRARY)]
    return own[0] if own else found[-1] if found else None


def _subclasses(kind: type[Policy]) -> Iterator[type[Policy]]:
    for below in kind.__subclasses__():
        yield below
        yield from _subclasses(below)


def read_settings(base_settings: Any) -> dict[str, Any]:
    """Checked settings of a base: what the outer policy decides is not among them."""
    if base_settings is None:
        return {}
    if not isinstance(base_settings, Mapping) or not all(isinstance(name, str) for name in base_settings):
        raise InputError(f"base_settings must be a mapping of names to values, got {base_settings!r}")
    for name in COMMON_SETTINGS:
        if name in base_settings:
            raise InputError(f"base_settings may not hold {name!r}: give it to the outer policy, which decides it")
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in base_settings.items()}


class NestingPolicy(Policy):
    """A policy that plays others, which it drives by the methods that `Policy` calls on itself."""

    base: type[Policy]

    @property
    @abstractmethod
    def _playing(self) -> Policy:
        """The base that plays now."""

    @property
    def _eldest(self) -> Policy:
        """The base whose beliefs are shown."""
        return self._playing

    @abstractmethod
    def _left(self) -> int:
        """Rounds until another base may play."""

    def _law(self) -> Floats:
        return self._playing._law()

    def _law_within(self, mask: Bools) -> tuple[Floats, bool]:
        return self._playing._law_within(mask)

    def _pick(self, law: Floats, count: int) -> Ints:
        return self._playing._pick(law, count)

    def _quiet_rounds(self) -> int:
        return max(min(self._playing._quiet_rounds(), self._left()), 1)

    def _estimate(self) -> Floats:
        return self._eldest._estimate()

    def _interval(self) -> tuple[Floats, Floats] | None:
        return self._eldest._interval()

    def _setting(self, name: str) -> Any:
        if name == "base":
            return self.base.__name__
        value = super()._setting(name)
        return dict(value) if name == "base_settings" else value

    def _new_base(self, base: type[Inner], settings: Mapping[str, Any], *, horizon: int) -> Inner:
        """A fresh base for `horizon` rounds of its own, on the arms, range and random draws of this policy."""
        try:
            inner = base(
                self.arms,
                horizon=horizon,
                seed=self.seed,
                reward_range=self.reward_range,
                pending_limit=self._pending.limit,
                **settings,
            )
        except TypeError as error:
            raise InputError(f"base_settings do not fit {base.__name__}: {error}") from error
        inner._draws = self._draws
        return inner

    def _turn_base(self, inner: Policy) -> None:
        """Let `inner` move on to its next law, if it is due."""
        if inner._due():
            inner._turn()
            inner._version += 1

    def _follow_base(self, inner: Policy, arms: Sequence[int], counted: bool) -> None:
        """Tell `inner` which arms were drawn from its law."""
        inner.rounds += len(arms)
        inner._drawn(arms, counted)

    def _teach_base(self, inner: Policy, row: Row, reward: float) -> None:
        """Tell `inner` a reward; `row` has its own numbers. What comes too late for it is counted here."""
        late = inner.late
        inner._learn_one(row, reward)
        inner._version += 1
        self.late += inner.late - late

    def _export_base(self, inner: Policy) -> dict[str, Any]:
        """State of a base that has begun."""
        return {"rounds": inner.rounds, "late": inner.late, "version": inner._version, "engine": inner._export()}

    def _load_base(self, inner: Policy, state: states.Reader) -> None:
        """Inverse of `_export_base`, into a base that `_new_base` has just made."""
        if inner.horizon is None:
            raise StateError("a base is built for a known number of rounds")
        inner._phase_length = inner.horizon
        inner.rounds = state.integer("rounds", high=inner.horizon)
        inner.late = state.integer("late", high=FARTHEST)
        inner._version = state.integer("version", high=FARTHEST)
        inner._import(state.reader("engine"))

    def _check_base_untold(self, inner: Policy, rounds: Ints) -> None:
        """Refuse a base that knows the rewards of these rounds of its own already, which are to come."""
        if isinstance(inner, WindowedPolicy):
            inner._window.check_untold(rounds)


class Exp3:
    """Exponential weights over `size` options, of which one is tried in each of `rounds` rounds; rewards in [0, 1].

    exp3     gamma = min(1, sqrt(M ln M / ((e - 1) n))); log w_j += gamma x / (M p_j) for the option tried
    exp3p    gamma = min(3/5, 2 sqrt(0.6 M ln M / n)), alpha = 2 sqrt(ln(M n / delta));
             log w_j += gamma / (3 M) (x_j + alpha / sqrt(M n)) / p_j for all, x_j = x for the option tried and 0 else

    p = (1 - gamma) w / sum(w) + gamma / M. Only log w is kept, with largest value 0 (so that the published start of
    exp3p, the same weight for all, is a start at 1).

    Exp3 is from Auer et al. (2002) as Cheung et al. use it; Exp3.P holds with high probability and explores more.

    >>> learner = Exp3(2, rounds=10)
    >>> learner.update(0, 1.0)
    >>> bool(learner.probabilities[0] > 0.5)
    True
    """

    def __init__(
        self, size: int, *, rounds: int, learner: Literal["exp3", "exp3p"] = "exp3", failure_probability: float = 0.01
    ) -> None:
        self.cautious = learner == "exp3p"
        spread = size * math.log(size) / rounds
        self.exploration = (
            min(0.6, 2.0 * math.sqrt(0.6 * spread)) if self.cautious else min(1.0, math.sqrt(spread / (math.e - 1.0)))
        )
        self.bonus = 2.0 * math.sqrt(math.log(size * rounds / failure_probability)) / math.sqrt(size * rounds)
        self.log_weights: Floats = np.zeros(size)

    @property
    def probabilities(self) -> Floats:
        """Law over the options, shape (M,)."""
        weights = np.exp(self.log_weights)
        return np.asarray((1.0 - self.exploration) * weights / weights.sum() + self.exploration / len(weights))

    def update(self, tried: int, reward: float, law: Floats | None = None) -> None:
        """Learn the reward in [0, 1] of the option tried, drawn from `law` if that is not the present one."""
        law = self.probabilities if law is None else law
        step = self.exploration / len(law)
        if self.cautious:
            step /= 3.0
            self.log_weights += step * self.bonus / law
        self.log_weights[tried] += step * reward / law[tried]
        self.log_weights -= self.log_weights.max()
