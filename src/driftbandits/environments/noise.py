"""Noise by name: a reward is the inverse distribution function at one uniform, common to all policies.

| symbol | name      | shape | meaning                                   |
|--------|-----------|-------|-------------------------------------------|
| m      | means     | (n,)  | mean reward of the arm played             |
| u      | uniforms  | (n,)  | uniform numbers in [0, 1), one per round  |
| y      | rewards   | (n,)  | F^-1(u) for the distribution F with mean m |
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from driftbandits._util.checks import check_positive
from driftbandits.errors import InputError
from driftbandits.types import Floats

# Uniforms are multiples of 2^-53, so 0 stands for the cell [0, 2^-53): its middle keeps quantiles finite.
SMALLEST_UNIFORM = 2.0**-54


class Noise(ABC):
    """Distribution of a reward around its mean. Every kind keeps the mean exactly: E y = m.

    A kind of your own gives `sample`, `range` and `deviation`, and refuses means that it cannot serve in `check`.

    >>> class Coin(Noise):
    ...     '''The mean plus or minus a half, with equal chances.'''
    ...
    ...     def sample(self, means, uniforms):
    ...         return means + np.where(uniforms < 0.5, -0.5, 0.5)
    ...
    ...     def range(self, low, high):
    ...         return low - 0.5, high + 0.5
    ...
    ...     def deviation(self, means):
    ...         return np.full(np.shape(means), 0.5)
    >>> Coin().sample(np.array([0.0, 0.0]), np.array([0.1, 0.9]))
    array([-0.5,  0.5])
    """

    @abstractmethod
    def sample(self, means: Floats, uniforms: Floats) -> Floats:
        """Rewards F^-1(u), rising in u.

        Parameters
        ----------
        means : shape (n,)
        uniforms : in [0, 1), shape (n,)

        Returns
        -------
        array, shape (n,)
        """

    @abstractmethod
    def range(self, low: float, high: float) -> tuple[float, float]:
        """Interval that holds every reward whose mean lies in [low, high]; infinite for unbounded noise.

        Parameters
        ----------
        low, high : ends of the interval of means

        Returns
        -------
        (low, high)
        """

    @abstractmethod
    def deviation(self, means: Floats) -> Floats:
        """Standard deviation of a reward with each of these means.

        Parameters
        ----------
        means : shape (n,)

        Returns
        -------
        array, shape (n,)
        """

    def check(self, low: float, high: float) -> None:
        """Refuse means that cannot be served; the default serves any.

        Parameters
        ----------
        low, high : ends of the interval of means

        Raises
        ------
        InputError
            If some mean between them cannot be served.
        """
        del low, high


@dataclass(frozen=True)
class GaussianNoise(Noise):
    """Normal noise: y = m + sd Phi^-1(u).

    Unbounded: a policy with a declared reward range has to clip. `TruncatedGaussianNoise` does not need that.

    Parameters
    ----------
    sd : standard deviation; 0.0 gives rewards without noise

    >>> GaussianNoise(0.1).sample(np.array([0.5]), np.array([0.5]))
    array([0.5])
    """

    sd: float

    def __post_init__(self) -> None:
        _check_scale(self, "sd", self.sd, zero=True)

    def sample(self, means: Floats, uniforms: Floats) -> Floats:
        """Rewards m + sd Phi^-1(u)."""
        rewards: Floats = special.ndtri(np.maximum(uniforms, SMALLEST_UNIFORM)) * self.sd + means
        return rewards

    def range(self, low: float, high: float) -> tuple[float, float]:
        """The whole line, or the means themselves where sd is 0."""
        return (low, high) if self.sd == 0 else (-math.inf, math.inf)

    def deviation(self, means: Floats) -> Floats:
        """The same for every mean."""
        return np.full(np.shape(means), self.sd)


@dataclass(frozen=True)
class TruncatedGaussianNoise(Noise):
    """Normal noise cut symmetrically about the mean so that |y| <= 1, as in the paper's experiments.

    y = m + sd sqrt 2 erfinv((2 u - 1) w), with c = 1 - |m| the half width and w = erf(c / (sd sqrt 2)) its
    probability. Because the cut is symmetric the mean stays m; the standard deviation is a little below `sd`
    (see `deviation`). Means must lie strictly inside (-1, 1).

    Parameters
    ----------
    sd : standard deviation before the cut; positive

    >>> noise = TruncatedGaussianNoise(0.1)
    >>> noise.range(-0.8, 0.8)
    (-1.0, 1.0)
    >>> float(noise.deviation(np.array([0.8]))[0].round(3))
    0.088
    """

    sd: float

    def __post_init__(self) -> None:
        _check_scale(self, "sd", self.sd, zero=False)

    def sample(self, means: Floats, uniforms: Floats) -> Floats:
        """Rewards inside [m - c, m + c]; u = 0 gives m - c."""
        if means.size == uniforms.size == 1:  # a live round: the same operations on plain floats cost a fifth
            return np.array([self._quantile(means.item(), uniforms.item(), min, max)])
        rewards: Floats = self._quantile(means, uniforms, np.minimum, np.maximum)
        return rewards

    def _quantile(self, mean: Any, uniform: Any, smaller: Any, larger: Any) -> Any:
        half, scale = 1.0 - abs(mean), math.sqrt(2.0) * self.sd
        spread = special.erfinv((2.0 * uniform - 1.0) * special.erf(half / scale)) * scale
        return larger(smaller(spread, half), -half) + mean  # rounding may not carry a reward past its bound

    def range(self, low: float, high: float) -> tuple[float, float]:
        """[-1, 1] as soon as the means have both signs."""
        return (2 * low - 1 if low > 0 else -1.0), (2 * high + 1 if high < 0 else 1.0)

    def deviation(self, means: Floats) -> Floats:
        """sd sqrt(1 - 2 a f(a) / w), with a = c / sd, f the normal density and w = erf(a / sqrt 2)."""
        bound = (1.0 - np.abs(means)) / self.sd
        density = np.exp(-0.5 * bound**2) / math.sqrt(2 * math.pi)
        inside = special.erf(bound * math.sqrt(0.5))
        deviations: Floats = self.sd * np.sqrt(np.maximum(1.0 - 2.0 * bound * density / inside, 0.0))
        return deviations

    def check(self, low: float, high: float) -> None:
        """Means strictly inside (-1, 1)."""
        if not -1 < low <= high < 1:
            _refuse(self, low, high, "means strictly between -1 and 1; scale the means down, or use GaussianNoise(sd)")


@dataclass(frozen=True)
class BernoulliNoise(Noise):
    """Rewards 0 or 1 with probability m of a 1: y = 1 if u >= 1 - m. Means must lie in [0, 1].

    >>> BernoulliNoise().sample(np.array([0.3, 0.3]), np.array([0.6, 0.8]))
    array([0., 1.])
    """

    def sample(self, means: Floats, uniforms: Floats) -> Floats:
        """Rewards 0.0 or 1.0."""
        return (uniforms >= 1.0 - means).astype(np.float64)

    def range(self, low: float, high: float) -> tuple[float, float]:
        """[0, 1], but a single value where the mean leaves no choice."""
        return (1.0 if low >= 1 else 0.0), (0.0 if high <= 0 else 1.0)

    def deviation(self, means: Floats) -> Floats:
        """sqrt(m (1 - m))."""
        deviations: Floats = np.sqrt(np.multiply(means, np.subtract(1.0, means)))
        return deviations

    def check(self, low: float, high: float) -> None:
        """Means in [0, 1]."""
        if not 0 <= low <= high <= 1:
            _refuse(self, low, high, "means in [0, 1]; shift and scale them, for example offset=0.5 and peak=0.4")


@dataclass(frozen=True)
class UniformNoise(Noise):
    """Even noise: y = m + half_width (2 u - 1).

    Parameters
    ----------
    half_width : how far a reward lies from its mean at most

    >>> UniformNoise(0.2).range(-0.8, 0.8)
    (-1.0, 1.0)
    """

    half_width: float

    def __post_init__(self) -> None:
        _check_scale(self, "half_width", self.half_width, zero=True)

    def sample(self, means: Floats, uniforms: Floats) -> Floats:
        """Rewards in [m - half_width, m + half_width)."""
        return (uniforms * 2.0 - 1.0) * self.half_width + means

    def range(self, low: float, high: float) -> tuple[float, float]:
        """The means' interval, wider by half_width on both sides."""
        return low - self.half_width, high + self.half_width

    def deviation(self, means: Floats) -> Floats:
        """half_width / sqrt 3 for every mean."""
        return np.full(np.shape(means), self.half_width / math.sqrt(3))


@dataclass(frozen=True)
class StudentTNoise(Noise):
    """Heavy-tailed noise: y = m + scale F_df^-1(u), Student's t.

    The standard deviation is scale sqrt(df / (df - 2)), infinite for df <= 2.
    Slow: the quantile costs some 20 times that of a normal.

    Parameters
    ----------
    scale : positive
    df : degrees of freedom, above 1 so that the mean exists

    Raises
    ------
    InputError
        For other numbers than these.

    >>> float(StudentTNoise(0.1, df=3).deviation(np.array([0.0]))[0].round(4))
    0.1732
    """

    scale: float
    df: float = 3.0

    def __post_init__(self) -> None:
        _check_scale(self, "scale", self.scale, zero=False)
        check_positive("StudentTNoise: df", self.df)
        if self.df <= 1:
            raise InputError(f"StudentTNoise: df must exceed 1, or the mean does not exist; got {self.df!r}")

    def sample(self, means: Floats, uniforms: Floats) -> Floats:
        """Rewards m + scale F_df^-1(u)."""
        rewards: Floats = special.stdtrit(self.df, np.maximum(uniforms, SMALLEST_UNIFORM)) * self.scale + means
        return rewards

    def range(self, low: float, high: float) -> tuple[float, float]:  # noqa: ARG002
        """The whole line."""
        return -math.inf, math.inf

    def deviation(self, means: Floats) -> Floats:
        """The same for every mean; infinite for df <= 2."""
        factor = math.sqrt(self.df / (self.df - 2)) if self.df > 2 else math.inf
        return np.full(np.shape(means), self.scale * factor)


def _check_scale(noise: Noise, name: str, value: Any, *, zero: bool) -> None:
    described = f"{type(noise).__name__}: {name}"
    number = check_positive(described, value, zero=True)
    if number == 0 and not zero:
        raise InputError(
            f"{described} must be a positive number, got 0; for rewards without noise use GaussianNoise(0.0)"
        )


def _refuse(noise: Noise, low: float, high: float, wants: str) -> None:
    raise InputError(f"{noise!r} cannot serve means from {low:.6g} to {high:.6g}: it needs {wants}")


PAPER_NOISE = TruncatedGaussianNoise(0.1)  # of all experiments of the paper


def usual_noise(low: float, high: float) -> Noise:
    """The noise of a world that is given means in [low, high] and no noise.

    Where it can be, the paper's, whose rewards stay within the range that policies expect by default; else normal
    noise of the same size, which serves any means.

    >>> usual_noise(0.0, 0.5), usual_noise(0.0, 20.0)
    (TruncatedGaussianNoise(sd=0.1), GaussianNoise(sd=0.1))
    """
    return PAPER_NOISE if -1 < low <= high < 1 else GaussianNoise(PAPER_NOISE.sd)
