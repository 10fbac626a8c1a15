"""`explain()`: the beliefs of the mixture as sentences and numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from driftbandits.policies.auto.beliefs import memory_of
from driftbandits.policies.auto.change_report import ChangeReport
from driftbandits.policies.auto.echoes import OWN, WHITE
from driftbandits.policies.auto.mixture import Mixture
from driftbandits.policies.auto.probing import ProbingSummary
from driftbandits.policies.rewards import RewardScale
from driftbandits.text import counted, label
from driftbandits.types import Floats

_ARMS_SHOWN = 3
_LEAST_SUSPICION = 0.05  # a less likely change is not mentioned
_STRONG_SUSPICION = 0.5  # from here on, no claim that nothing has changed
_LONGEST_INTERVAL_SHOWN = 1e6  # rounds between re-tests
_SPELLS = {"common": "common to all arms", "own": "of each arm by itself"}
_KERNEL_IGNORED = '; the kernel of the arms is not used, kernel="given" takes it'
_LEAST_WEIGHT_SHOWN = 0.005  # of a time scale or a length scale


@dataclass(frozen=True, slots=True)
class ArmBelief:
    """Expected reward of an arm with its 95 % interval, as in `summary`, in the user's units."""

    arm: int
    name: str
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Explanation:
    """Beliefs of an `AutoBandit`; `str(explanation)` puts them into sentences.

    Parameters
    ----------
    rounds : rounds asked so far
    memory : weight of every time scale, keyed by the number of rounds remembered; infinity means no drift
    since : the round of the latest recorded change; 0 if there is none
    suspected : probability that there was another change since then, not yet recorded
    suspected_since : the most likely round of that change
    noise : standard deviation of the rewards of an arm about their mean, in the user's units; for rewards of two
        values, that of the best arm
    length_scales : weight of every length scale, in standard deviations of the points' columns; 0 means independent
        arms, None the kernel of the `ArmSet`
    correlations : weight of every correlation between segments, if the arms have segments; None is the given one
    best : the arms with the highest expected rewards
    probing : probability that the next round re-tests an inferior arm
    look_every : rounds between two re-tests of an inferior arm or a similar one, median over these arms
    changes : changes found so far
    hidden : changes found by re-tests: an arm that was not being played had become better
    shown : changes that were visible in the best arm itself; each of them makes re-tests rarer
    spells : weight of noise that comes in spells: "common" to all arms, or each arm's "own"
    doubtful : whether the rewards do not fit what is believed, as a `DoubtWarning` has said
    columns : for every column of the contexts, how likely it matters; none where requests have no contexts
    ignores_kernel : whether the arms have a kernel of their own, which length scales take the place of

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
    doubtful: bool = False
    ignores_kernel: bool = False
    spells: dict[str, float] = field(default_factory=dict)
    columns: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        """The sentences, then the numbers."""
        return "\n".join((*self._sentences(), *self._numbers()))

    def _sentences(self) -> list[str]:
        status = f" No change since round {self.since:,}." if self.changes else ""
        memory, weight = max(self.memory.items(), key=lambda item: item[1])
        if math.isfinite(memory) and weight > self.memory.get(math.inf, 0.0):
            status = f" Rewards are drifting: data older than {memory:,.0f} rounds counts little."
        likely = f"change around round {self.suspected_since:,} ({100 * self.suspected:.0f} % likely, not yet certain)"
        suspected = f"{'another ' if self.changes else 'a '}{likely}"
        if self.suspected >= _STRONG_SUSPICION:
            status = f" There was probably {suspected}."
        first, others = self.best[0], " and ".join(label(arm.name) for arm in self.best[1:])
        found = counted(self.changes, "change") if self.changes else "no change"
        sentences = [
            f"After {counted(self.rounds, 'round')}: {found} found.{status}",
            f"The best arm is {label(first.name)}, with an expected reward of {first.mean:.3g}"
            + (f"; next are {others}." if others else "."),
        ]
        if _LEAST_SUSPICION <= self.suspected < _STRONG_SUSPICION:
            sentences.insert(1, f"There may have been {suspected}.")
        if self.columns:
            matter = [label(name) for name, weight in self.columns.items() if weight >= _STRONG_SUSPICION]
            on = f"depend on {_listed(matter)}" if matter else "do not depend on the context, as far as can be told"
            sentences.append(f"Rewards {on}.")
        if self.doubtful:
            sentences.insert(0, "The rewards do not fit what is believed: do not trust the estimates.")
        return [*sentences, *self._probing_sentence()]

    def _probing_sentence(self) -> list[str]:
        if self.look_every > _LONGEST_INTERVAL_SHOWN:
            return []
        found = counted(self.hidden, "change") if self.hidden else "no change"
        shown = f"; {counted(self.shown, 'change')} showed without one" if self.shown else ""
        every = float(f"{self.look_every:.2g}")
        return [f"Inferior arms are re-tested about every {every:,.0f} rounds: {found} found that way{shown}."]

    def _numbers(self) -> list[str]:
        steady = self.memory.get(math.inf, 0.0)
        drifts = [
            f"drifting, memory {memory:,.0f} rounds ({weight:.2f})"
            for memory, weight in sorted(self.memory.items())
            if math.isfinite(memory) and weight >= _LEAST_WEIGHT_SHOWN
        ]
        fresh = self.suspected if self.suspected >= _LEAST_SUSPICION else 0.0
        parts = ((self.since, steady - fresh), (self.suspected_since, fresh))
        stable = [
            f"unchanged since round {when} ({weight:.2f})" for when, weight in parts if weight >= _LEAST_WEIGHT_SHOWN
        ]
        arms = ", ".join(f"{label(b.name)} {b.mean:.3g} [{b.low:.3g}, {b.high:.3g}]" for b in self.best)
        scales = ", ".join(f"{_scale(s)} ({w:.2f})" for s, w in self.length_scales.items() if w >= _LEAST_WEIGHT_SHOWN)
        related = [f"{_scale(r, 'none')} ({w:.2f})" for r, w in self.correlations.items() if w >= _LEAST_WEIGHT_SHOWN]
        columns = [f"{label(c)} ({w:.2f})" for c, w in self.columns.items() if w >= _LEAST_SUSPICION]
        spells = "".join(
            f"; in spells {_SPELLS[kind]} ({weight:.2f})"
            for kind, weight in self.spells.items()
            if weight >= _LEAST_WEIGHT_SHOWN
        )
        return [
            f"dynamics      {'; '.join(stable + drifts)}",
            f"noise         standard deviation {self.noise:.3g}{spells}",
            f"length scale  {scales}{_KERNEL_IGNORED if self.ignores_kernel else ''}",
            *([f"segments      correlation {', '.join(related)}"] if related else []),
            *([f"columns       {', '.join(columns) or 'none matters'}"] if self.columns else []),
            f"best arms     {arms}",
            f"probing       {100 * self.probing:.2g} % of rounds",
        ]


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _scale(scale: float | None, none: str = "none, arms are independent") -> str:
    if scale is None:
        return "as given"
    return f"{scale:.2g}" if scale else none


def explain(
    mixture: Mixture,
    report: ChangeReport,
    *,
    rounds: int,
    probing: ProbingSummary,
    changes: int,
    names: Sequence[str] | None,
    scale: RewardScale,
    estimate: Floats,
    interval: Floats,
    doubtful: bool,
    ignores_kernel: bool,
    columns: dict[str, float],
) -> Explanation:
    """The beliefs of `mixture`, in the user's units.

    `estimate` and `interval` of every arm are given, so that they equal those of `summary`.
    """
    beliefs, weights = mixture.beliefs, mixture.weights()
    memory: dict[float, float] = {}
    for rate, weight in zip(beliefs.rate[: beliefs.count].tolist(), weights.tolist(), strict=True):
        memory[memory_of(rate)] = memory.get(memory_of(rate), 0.0) + weight
    priors, kinds = beliefs.priors, mixture.kinds().tolist()
    fresh = np.where((beliefs.rate[: beliefs.count] == 0) & report.fresh(beliefs.count), weights, 0.0)
    best = np.argsort(-estimate, kind="stable")[:_ARMS_SHOWN]
    noise = float(weights @ beliefs.scatter)
    if beliefs.units is not None:  # the noise of two-valued rewards depends on the arm
        noise = float(beliefs.units.noise_of(estimate)[best[0]])
    low, middle, high = (scale.outward(values[best]) for values in (interval[0], estimate, interval[1]))
    models = beliefs.model[: beliefs.count]
    common = float(weights[(models != WHITE) & (models < OWN)].sum())
    return Explanation(
        rounds=rounds,
        memory=memory,
        since=report.began,
        suspected=float(fresh.sum()),
        suspected_since=int(beliefs.birth[int(fresh.argmax())]),
        noise=scale.outward_size(math.sqrt(noise)),
        length_scales=_total_weights(priors.length_scales, kinds),
        correlations=_total_weights(priors.correlations, kinds) if priors.correlations else {},
        best=tuple(
            ArmBelief(int(arm), str(arm) if names is None else names[arm], float(m), float(a), float(b))
            for arm, m, a, b in zip(best, middle, low, high, strict=True)
        ),
        probing=probing.share,
        look_every=probing.every,
        hidden=probing.found,
        shown=probing.shown,
        changes=changes,
        doubtful=doubtful,
        ignores_kernel=ignores_kernel,
        columns=columns,
        spells={"common": common, "own": float(weights[models >= OWN].sum())},
    )


def _total_weights(values: Sequence[float | None], weights: Sequence[float]) -> dict[float | None, float]:
    """Total weight of every value; several priors may share one."""
    found: dict[float | None, float] = {}
    for value, weight in zip(values, weights, strict=True):
        found[value] = found.get(value, 0.0) + weight
    return found
