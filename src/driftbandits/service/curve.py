"""Reward over time, to be looked at: neighbouring points joined until each can be read, with a 95 % band.

The band of rewards of two values is Clopper and Pearson's, that of others Student's. Where all rewards of a point are
equal that one would have no width: so many equal rewards only say that others are rare.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from driftbandits.intervals import CONFIDENCE_LEVEL
from driftbandits.service.series import Point, Series, Sums

LEAST = 20  # decisions per point
MOST_POINTS = 50
_TAIL = (1.0 - CONFIDENCE_LEVEL) / 2.0


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Mean reward of decisions made from `begin` to `end` (seconds since 1970), its band, and what that rests on."""

    begin: float
    end: float
    mean: float
    low: float
    high: float
    count: int
    decisions: int
    fallbacks: int


def curve(series: Series, reward_range: tuple[float, float]) -> tuple[CurvePoint, ...]:
    """The curve; without points whose rewards are not known yet."""
    known = [(point, sums) for point in series.points if (sums := series.sums(point)) is not None]
    if not known:
        return ()
    everything = _added(sums for _, sums in known)
    parts = _joined(known, max(everything.count / MOST_POINTS, LEAST))
    return tuple(_curve_point(part, everything, reward_range) for part in parts)


def _joined(known: list[tuple[Point, Sums]], wanted: float) -> list[list[tuple[Point, Sums]]]:
    """Neighbours, until each part has as many rewards as wanted; too small a rest belongs to the last."""
    parts: list[list[tuple[Point, Sums]]] = [[]]
    for one in known:
        if _count(parts[-1]) >= wanted:
            parts.append([])
        parts[-1].append(one)
    if len(parts) > 1 and _count(parts[-1]) < wanted / 2:
        rest = parts.pop()
        parts[-1] += rest
    return parts


def _count(part: list[tuple[Point, Sums]]) -> int:
    return sum(sums.count for _, sums in part)


def _added(given: Iterable[Sums]) -> Sums:
    return reduce(Sums.__add__, given)


def _curve_point(part: list[tuple[Point, Sums]], everything: Sums, reward_range: tuple[float, float]) -> CurvePoint:
    sums = _added(sums for _, sums in part)
    low, high = band(sums, everything, reward_range)
    return CurvePoint(
        begin=part[0][0].begin / 1e6,
        end=part[-1][0].end / 1e6,
        mean=sums.mean,
        low=low,
        high=high,
        count=sums.count,
        decisions=sum(point.decisions for point, _ in part),
        fallbacks=sum(point.fallbacks for point, _ in part),
    )


def band(sums: Sums, everything: Sums, reward_range: tuple[float, float]) -> tuple[float, float]:
    """Ends of the 95 % interval of a mean; `everything` shows which rewards there are.

    >>> one, zeros = Sums.of([1.0]), Sums.of([0.0] * 33)
    >>> low, high = band(zeros, zeros + one, (0.0, 1.0))
    >>> low, round(high, 3)
    (0.0, 0.106)
    """
    least, most = everything.least, everything.most
    if least == most:
        least, most = reward_range
    if sums.least == sums.most:
        others = 1.0 - _TAIL ** (1.0 / sums.count)  # a larger share of other rewards would have shown itself
        return sums.mean - others * (sums.mean - least), sums.mean + others * (most - sums.mean)
    if everything.is_two_valued:
        low, high = _share_ends(round((sums.total - sums.count * least) / (most - least)), sums.count)
        return least + low * (most - least), least + high * (most - least)
    half = _student(sums.count - 1) * sums.error
    return max(sums.mean - half, reward_range[0]), min(sums.mean + half, reward_range[1])


def _share_ends(hits: int, runs: int) -> tuple[float, float]:
    """As `intervals.share_interval`, without half a second of imports; both values were seen."""
    from scipy.special import betaincinv

    return float(betaincinv(hits, runs - hits + 1, _TAIL)), float(betaincinv(hits + 1, runs - hits, 1.0 - _TAIL))


def _student(freedom: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1.0 - _TAIL))
