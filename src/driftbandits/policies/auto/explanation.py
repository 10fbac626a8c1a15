"""What the mixture believes, for people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from driftbandits.policies.auto.beliefs import memory_of
from driftbandits.policies.auto.change_report import ChangeReport
from driftbandits.policies.auto.mixture import Mixture
from driftbandits.policies.auto.probing import Looks
from driftbandits.policies.rewards import RewardScale
from driftbandits.text import counted, label
from driftbandits.types import Floats

_ARMS_SHOWN = 3
_LEAST_SUSPICION = 0.05  # that is spoken of
_STRONG_SUSPICION = 0.5  # from which on the world is not said to be as it was
_LONGEST_INTERVAL_SHOWN = 1e6  # rounds between looks
_LEAST_WEIGHT_SHOWN = 0.005  # of a time scale or a length scale


@dataclass(frozen=True, slots=True)
class ArmBelief:
    """Expected reward of an arm with its 95 % interval, those of `summary`; in the user's units."""

    arm: int
    name: str
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Explanation:
    """Beliefs of an `AutoBandit`; `str(explanation)` has them in sentences.

    Parameters
    ----------
    rounds : rounds asked so far
    memory : weight of every time scale, by the number of rounds remembered; infinity is a world that does not drift
    since : the round the present world began, as the record of the latest change says; 0 if none was found
    suspected : probability that it has changed since then: no record yet
    suspected_since : the round in which it has most likely changed, if it has
    noise : standard deviation of a reward about its mean, in the user's units; if rewards have two values, of the best
        arm's
    length_scales : weight of every length scale, in standard deviations of the points' columns; 0 is independent arms,
        None the kernel the arms came with
    correlations : weight of every correlation of the segments, where arms are options in segments; None is the given
    best : the arms with the highest expected rewards
    probing : probability that the next round is a look at an arm that seems worse
    look_every : rounds between two looks at such an arm, or at one like it; the median over them
    changes : changes found so far
    hidden : changes found by looks: an arm that was not played had become better
    shown : changes that the best arm showed by itself; each makes looks rarer

    >>> from driftbandits import ArmSet, AutoBandit
    >>> policy = AutoBandit(ArmSet([[0.0], [1.0]], names=["left", "right"]), seed=0)
    >>> for _ in range(50):
    ...     choice = policy.ask()
    ...     policy.tell(choice, [0.1, 0.4][choice.arm])
    >>> belief = policy.explain()
    >>> belief.best[0].name, belief.changes, belief.since
    ('right', 0, 0)
    """

    rounds: int
    memory: dict[float, float]
    since: int
    noise: float
    length_scales: dict[float | None, float]
    best: tuple[ArmBelief, ...]
    probing: float
    changes: int
    look_every: float = math.inf
    hidden: int = 0
    shown: int = 0
    suspected: float = 0.0
    suspected_since: int = 0
    correlations: dict[float | None, float] = field(default_factory=dict)

    def __str__(self) -> str:
        """Sentences first, the numbers after."""
        return "\n".join((*self._sentences(), *self._numbers()))

    def _sentences(self) -> list[str]:
        changes = "no change" if self.changes == 0 else counted(self.changes, "change")
        since = f"is as it has been since round {self.since:,}" if self.since else "is as it was when it began"
        memory, weight = max(self.memory.items(), key=lambda item: item[1])
        if math.isfinite(memory) and weight > self.memory.get(math.inf, 0.0):
            since = f"is drifting: what is older than {memory:,.0f} rounds counts little"
        likely = f"{100 * self.suspected:.0f} % likely, not enough for a record"
        doubt = f"{'again ' if self.changes else ''}around round {self.suspected_since:,}: {likely}"
        found = "found"
        if self.suspected >= _STRONG_SUSPICION:
            found, since = "on record", f"has probably changed {doubt}"
        first, others = self.best[0], " and ".join(label(arm.name) for arm in self.best[1:])
        sentences = [
            f"After {counted(self.rounds, 'round')} and {changes} {found}, the world {since}.",
            f"The best arm is {label(first.name)}, expected to give {first.mean:.3g}"
            + (f"; next come {others}." if others else "."),
        ]
        if _LEAST_SUSPICION <= self.suspected < _STRONG_SUSPICION:
            sentences.insert(1, f"It may have changed {doubt}.")
        return [*sentences, *self._looks()]

    def _looks(self) -> list[str]:
        if self.look_every > _LONGEST_INTERVAL_SHOWN:
            return []
        found = "none was found yet" if self.hidden == 0 else f"{counted(self.hidden, 'such change')} found so far"
        shown = f", and {counted(self.shown, 'change')} showed without a look" if self.shown else ""
        every = float(f"{self.look_every:.2g}")
        return [
            f"Each arm that looks worse is looked at about every {every:,.0f} rounds, in case it has become better "
            f"unseen; {found}{shown}."
        ]

    def _numbers(self) -> list[str]:
        steady = self.memory.get(math.inf, 0.0)
        drifts = [
            f"drifts, memory {memory:,.0f} rounds ({weight:.2f})"
            for memory, weight in sorted(self.memory.items())
            if math.isfinite(memory) and weight >= _LEAST_WEIGHT_SHOWN
        ]
        fresh = self.suspected if self.suspected >= _LEAST_SUSPICION else 0.0
        parts = ((self.since, steady - fresh), (self.suspected_since, fresh))
        moves = [
            f"as it is since round {when} ({weight:.2f})" for when, weight in parts if weight >= _LEAST_WEIGHT_SHOWN
        ]
        arms = ", ".join(f"{label(b.name)} {b.mean:.3g} [{b.low:.3g}, {b.high:.3g}]" for b in self.best)
        scales = ", ".join(f"{_scale(s)} ({w:.2f})" for s, w in self.length_scales.items() if w >= _LEAST_WEIGHT_SHOWN)
        related = [f"{_scale(r, 'unlike')} ({w:.2f})" for r, w in self.correlations.items() if w >= _LEAST_WEIGHT_SHOWN]
        return [
            f"world         {'; '.join(moves + drifts)}",
            f"noise         standard deviation {self.noise:.3g}",
            f"length scale  {scales}",
            *([f"segments      correlation {', '.join(related)}"] if related else []),
            f"best arms     {arms}",
            f"probing       {100 * self.probing:.2g} % of rounds",
        ]


def _scale(scale: float | None, none: str = "none, arms are independent") -> str:
    if scale is None:
        return "as given"
    return f"{scale:.2g}" if scale else none


def explain(
    mixture: Mixture,
    watch: ChangeReport,
    *,
    rounds: int,
    looks: Looks,
    changes: int,
    names: Sequence[str] | None,
    scale: RewardScale,
    estimate: Floats,
    interval: Floats,
) -> Explanation:
    """The beliefs of `mixture`, in the user's units; `estimate` and `interval` of every arm, which others show too."""
    beliefs, weights = mixture.beliefs, mixture.weights()
    memory: dict[float, float] = {}
    for rate, weight in zip(beliefs.rate[: beliefs.count].tolist(), weights.tolist(), strict=True):
        memory[memory_of(rate)] = memory.get(memory_of(rate), 0.0) + weight
    priors, kinds = beliefs.priors, mixture.kinds().tolist()
    fresh = np.where((beliefs.rate[: beliefs.count] == 0) & watch.fresh(beliefs.count), weights, 0.0)
    best = np.argsort(-estimate, kind="stable")[:_ARMS_SHOWN]
    noise = float(weights @ beliefs.noise[: beliefs.count])
    if beliefs.units is not None:  # of two values, it depends on the arm
        noise = float(beliefs.units.noise_of(estimate)[best[0]])
    low, middle, high = (scale.outward(values[best]) for values in (interval[0], estimate, interval[1]))
    return Explanation(
        rounds=rounds,
        memory=memory,
        since=watch.began,
        suspected=float(fresh.sum()),
        suspected_since=int(beliefs.birth[int(fresh.argmax())]),
        noise=scale.outward_size(math.sqrt(noise)),
        length_scales=_added(priors.length_scales, kinds),
        correlations=_added(priors.correlations, kinds) if priors.correlations else {},
        best=tuple(
            ArmBelief(int(arm), str(arm) if names is None else names[arm], float(m), float(a), float(b))
            for arm, m, a, b in zip(best, middle, low, high, strict=True)
        ),
        probing=looks.share,
        look_every=looks.every,
        hidden=looks.found,
        shown=looks.shown,
        changes=changes,
    )


def _added(values: Sequence[float | None], weights: Sequence[float]) -> dict[float | None, float]:
    """Weight of every value, which several priors may have."""
    found: dict[float | None, float] = {}
    for value, weight in zip(values, weights, strict=True):
        found[value] = found.get(value, 0.0) + weight
    return found
