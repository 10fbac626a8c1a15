"""river's detectors as they come, and set so that they alarm as seldom as DriftDetector promises.

`python -m benchmarks.detector_rivals` finds these settings anew: for each noise the most sensitive one with which at
most 1 % of 400 still streams of 2,000 numbers have an alarm. This favours river's: DriftDetector has its 1 % in streams
of any length, with one setting for every noise. Streams are of tuning seeds, and none of them is shown in a table.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import driftbandits as db
from benchmarks.detector_streams import KINDS, Kind

FIRST_TUNING_SEED = 1_310_000
TUNING_STREAMS = 400
PROMISE = 0.01
OWN = "DriftDetector"
MATCHED = ", 1 %"  # behind the name of a detector with such a setting
SETTINGS = {"ADWIN": "delta", "Page-Hinkley": "threshold", "KSWIN": "alpha"}
# What main prints: by detector and noise.
FOUND: dict[str, dict[str, float]] = {
    "ADWIN": {"normal": 0.0158, "0/1": 0.0631, "t": 0.000316},
    "Page-Hinkley": {"normal": 119.0, "0/1": 31.5, "t": 133.0},
    "KSWIN": {"normal": 1e-05, "0/1": 0.0316, "t": 3.16e-06},
}

Make = Callable[[int], Any]


def new(name: str, seed: int, value: float | None = None) -> Any:
    """A detector of river's; `value` is what its setting is, else it is as it comes."""
    from river import drift

    own = {} if value is None else {SETTINGS[name]: value}
    if name == "ADWIN":
        return drift.ADWIN(**own)
    return drift.PageHinkley(**own) if name == "Page-Hinkley" else drift.KSWIN(seed=seed, **own)


def makers(noise: str) -> dict[str, Make]:
    """All that are compared on streams of this noise: DriftDetector, river's as they come, river's as found above."""
    found: dict[str, Make] = {OWN: lambda seed: db.DriftDetector(seed=seed)}
    for name in SETTINGS:
        found[name] = lambda seed, name=name: new(name, seed)  # type: ignore[misc]
    for name in SETTINGS:
        value = FOUND[name][noise]
        found[name + MATCHED] = lambda seed, name=name, value=value: new(name, seed, value)  # type: ignore[misc]
    return found


@contextlib.contextmanager
def quick_kswin() -> Iterator[None]:
    """Let KSWIN look up the p-values it asks scipy for: all its samples are of one size, so the distance says all.

    Every distance is asked for once. KSWIN decides as before, in a fifth of the time.
    """
    from river.drift import kswin

    ask, known = kswin.stats.ks_2samp, dict[tuple[int, int, int], Any]()

    def ks_2samp(first: Sequence[float], second: Sequence[float], method: str) -> Any:
        left, right = sorted(first), sorted(second)
        apart = max(
            abs(bisect_right(left, x) * len(right) - bisect_right(right, x) * len(left)) for x in {*left, *right}
        )
        key = (len(left), len(right), apart)
        if key not in known:
            known[key] = ask(first, second, method=method)
        return known[key]

    kswin.stats.ks_2samp = ks_2samp
    try:
        yield
    finally:
        kswin.stats.ks_2samp = ask


def ladder(name: str) -> list[float]:
    """Settings to try, the least sensitive first."""
    if name == "ADWIN":
        return np.geomspace(1e-4, 1.0, 41).tolist()  # type: ignore[no-any-return]
    if name == "Page-Hinkley":
        return np.geomspace(500.0, 5.0, 81).tolist()  # type: ignore[no-any-return]
    return np.geomspace(1e-9, 1.0, 19).tolist()  # type: ignore[no-any-return]


def keeps_promise(name: str, value: float, kind: Kind) -> bool:
    """Whether few enough of the still streams have an alarm."""
    alarms = 0
    for seed in range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + TUNING_STREAMS):
        alarms += _alarms(new(name, seed, value), [*kind.first(seed), *kind.then(seed, 0.0)])
        if alarms > PROMISE * TUNING_STREAMS:
            return False
    return True


def _alarms(detector: Any, numbers: list[float]) -> bool:
    for number in numbers:
        detector.update(number)
        if detector.drift_detected:
            return True
    return False


def most_sensitive(name: str, kind: Kind) -> float:
    """By bisection: a more sensitive one alarms more often."""
    values = ladder(name)
    place = bisect_left(values, True, key=lambda value: not keeps_promise(name, value, kind))
    if not place:
        raise ValueError(f"{name} cannot be set so that it keeps the promise on {kind.name}")
    return float(f"{values[place - 1]:.3g}")


def main() -> None:
    """Find all settings."""
    kinds = {kind.noise: kind for kind in reversed(KINDS) if kind.before >= 1_000}
    with quick_kswin():
        for name in SETTINGS:
            print(f"{name!r}: { ({noise: most_sensitive(name, kind) for noise, kind in kinds.items()}) },", flush=True)


if __name__ == "__main__":
    main()
