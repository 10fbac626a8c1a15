"""What the mixture believes, for people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from driftbandits.policies.auto.beliefs import Beliefs, memory_of
from driftbandits.policies.auto.mixture import Mixture
from driftbandits.policies.core.scale import RewardScale
from driftbandits.showing import counted, label
from driftbandits.types import Floats

_ARMS_SHOWN = 3
_LEAST_WEIGHT_COUNTED = 1e-3  # of a hypothesis
_LEAST_WEIGHT_SHOWN = 0.005  # of a time scale or a length scale


@dataclass(frozen=True, slots=True)
class ArmBelief:
    """Expected reward of an arm, with an interval of two standard deviations; in the user's units."""

    arm: int
    name: str
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Explanation:
    """Beliefs of an `AutoBandit`.

    memory : weight of every time scale, by the number of rounds remembered; infinity is a world that does not drift
    since : the round the present world began, under the likeliest hypothesis that does not drift
    noise : standard deviation of a reward about its mean, in the user's units; if rewards have two values, of the best
        arm's
    length_scales : weight of every length scale, in standard deviations of the points' columns; 0 is independent arms,
        None the kernel the arms came with
    best : the arms with the highest expected rewards
    probing : probability that the next round is a look at an arm that seems worse
    """

    rounds: int
    memory: dict[float, float]
    since: int
    noise: float
    length_scales: dict[float | None, float]
    best: tuple[ArmBelief, ...]
    probing: float
    changes: int

    def __str__(self) -> str:
        steady = self.memory.get(math.inf, 0.0)
        drifts = [
            f"drifts, memory {memory:,.0f} rounds ({weight:.2f})"
            for memory, weight in sorted(self.memory.items())
            if math.isfinite(memory) and weight >= _LEAST_WEIGHT_SHOWN
        ]
        moves = [f"as it is since round {self.since} ({steady:.2f})"] if steady >= _LEAST_WEIGHT_SHOWN else []
        arms = ", ".join(f"{label(b.name)} {b.mean:.3g} [{b.low:.3g}, {b.high:.3g}]" for b in self.best)
        scales = ", ".join(f"{_scale(s)} ({w:.2f})" for s, w in self.length_scales.items() if w >= _LEAST_WEIGHT_SHOWN)
        return "\n".join(
            (
                f"after {counted(self.rounds, 'round')}, changes found: {self.changes}",
                f"world         {'; '.join(moves + drifts)}",
                f"noise         standard deviation {self.noise:.3g}",
                f"length scale  {scales}",
                f"best arms     {arms}",
                f"probing       {100 * self.probing:.2g} % of rounds",
            )
        )


def _scale(scale: float | None) -> str:
    if scale is None:
        return "as given"
    return f"{scale:.2g}" if scale else "none, arms are independent"


def explain(
    mixture: Mixture,
    *,
    rounds: int,
    looks: float,
    changes: int,
    names: Sequence[str] | None,
    scale: RewardScale,
) -> Explanation:
    """The beliefs of `mixture`, in the user's units."""
    beliefs, weights = mixture.beliefs, mixture.weights()
    memory: dict[float, float] = {}
    for rate, weight in zip(beliefs.rate[: beliefs.count].tolist(), weights.tolist(), strict=True):
        memory[memory_of(rate)] = memory.get(memory_of(rate), 0.0) + weight
    length_scales: dict[float | None, float] = {}
    for length, weight in zip(beliefs.priors.length_scales, mixture.kinds().tolist(), strict=True):
        length_scales[length] = length_scales.get(length, 0.0) + weight
    steady = np.where(beliefs.rate[: beliefs.count] == 0, weights, -1.0)
    mean, deviation = _moments(beliefs, weights)
    best = np.argsort(-mean)[:_ARMS_SHOWN]
    noise = float(weights @ beliefs.noise[: beliefs.count])
    if beliefs.units is not None:  # of two values, it depends on the arm
        noise = float(beliefs.units.noise_of(mean)[best[0]])
    low, middle, high = (scale.outward(values[best]) for values in (mean - 2 * deviation, mean, mean + 2 * deviation))
    return Explanation(
        rounds=rounds,
        memory=memory,
        since=int(beliefs.birth[int(steady.argmax())]),
        noise=scale.outward_size(math.sqrt(noise)),
        length_scales=length_scales,
        best=tuple(
            ArmBelief(int(arm), str(arm) if names is None else names[arm], float(m), float(a), float(b))
            for arm, m, a, b in zip(best, middle, low, high, strict=True)
        ),
        probing=looks,
        changes=changes,
    )


def _moments(beliefs: Beliefs, weights: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of every arm's reward under the mixture, each (N,)."""
    rows = np.flatnonzero(weights >= _LEAST_WEIGHT_COUNTED)
    share = weights[rows] / weights[rows].sum()
    readings = [beliefs.reading(int(row)) for row in rows]
    means = np.array([mean for mean, _ in readings])
    variances = np.array([variance for _, variance in readings])
    mean = share @ means
    return mean, np.sqrt(share @ (variances + np.square(means - mean)))
