"""DriftDetector beside river's ADWIN, Page-Hinkley and KSWIN: false alarms, delays by size of jump, time per number.

Every detector has the settings it comes with. Numbers are in units of the noise's standard deviation (0/1 numbers as
they are): Page-Hinkley's threshold of 50 means something there, DriftDetector and KSWIN do not mind, and ADWIN is
quicker than on smaller numbers. All see the same streams. DriftDetector's bets were chosen on streams of seeds below 60
and of seed 1,000,000; the seeds here are others. `--quick` has 20 streams instead of 200.
"""

from __future__ import annotations

import copy
import gc
import math
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import driftbandits as db
from driftbandits.intervals import share_interval
from driftbandits.types import Floats

BEFORE, AFTER = 1_000, 1_000  # numbers of a stream on both sides of its change
STREAMS, QUICK_STREAMS = 200, 20
FIRST_SEED = 1_000
LONG = 60_000  # numbers of the stream on which time and memory are measured
FIGURE = Path("results/benchmarks/detectors.png")
COLOURS = {"DriftDetector": "#EE3377", "ADWIN": "#0077BB", "Page-Hinkley": "#EE7733", "KSWIN": "#009988"}


@dataclass(frozen=True)
class Noise:
    """A kind of stream: how it is drawn for a size of jump (0: none), and the sizes tried."""

    name: str
    draw: Callable[[np.random.Generator, int, float], Floats]
    jumps: tuple[float, ...]
    unit: str


def _zero_one(rng: np.random.Generator, size: int, jump: float) -> Floats:
    return (rng.random(size) < 0.1 + jump).astype(np.float64)


NOISES = (
    Noise("normal", lambda rng, n, jump: rng.normal(jump, 1.0, n), (0.5, 1.0, 2.0, 5.0), "standard deviations"),
    Noise(
        "t, 3 degrees of freedom",
        lambda rng, n, jump: jump + rng.standard_t(3, n) / math.sqrt(3.0),
        (0.5, 1.0, 2.0, 5.0),
        "standard deviations",
    ),
    Noise("0/1, rate 0.1", _zero_one, (0.05, 0.1, 0.2, 0.4), "added to the rate"),
)


@dataclass(frozen=True)
class Row:
    """One detector on the streams of one noise: false alarms before any change, and a delay per stream and jump."""

    noise: Noise
    detector: str
    alarmed: int  # streams of BEFORE + AFTER numbers without a change that had an alarm
    streams: int
    delays: dict[float, Floats]  # infinite where nothing was found


def makers() -> dict[str, Callable[[int], Any]]:
    from river import drift

    return {
        "DriftDetector": lambda seed: db.DriftDetector(seed=seed),
        "ADWIN": lambda seed: drift.ADWIN(),  # noqa: ARG005
        "Page-Hinkley": lambda seed: drift.PageHinkley(),  # noqa: ARG005
        "KSWIN": lambda seed: drift.KSWIN(seed=seed),
    }


def first_alarm(detector: Any, numbers: list[float]) -> float:
    """Place of the first alarm, counted from 1; infinite if there is none."""
    for place, number in enumerate(numbers):
        detector.update(number)
        if detector.drift_detected:
            return place + 1
    return math.inf


def alarms_of(noise: Noise, make: Callable[[int], Any], seed: int) -> list[float]:
    """First alarm of a stream without a change, and the delay after every jump; all streams begin alike."""
    before = noise.draw(np.random.default_rng([seed, 0]), BEFORE, 0.0).tolist()
    detector, false_alarm = make(seed), math.inf
    for place, number in enumerate(before):
        detector.update(number)
        if detector.drift_detected:
            false_alarm = min(false_alarm, place + 1)
    after = [noise.draw(np.random.default_rng([seed, 1]), AFTER, jump).tolist() for jump in (0.0, *noise.jumps)]
    still, *delays = (first_alarm(copy.deepcopy(detector), numbers) for numbers in after)
    return [min(false_alarm, BEFORE + still), *delays]


def measure(noise: Noise, name: str, make: Callable[[int], Any], streams: int) -> Row:
    found = np.array([alarms_of(noise, make, FIRST_SEED + number) for number in range(streams)])
    delays = {jump: found[:, 1 + k] for k, jump in enumerate(noise.jumps)}
    return Row(noise, name, int(np.isfinite(found[:, 0]).sum()), streams, delays)


def show(rows: list[Row]) -> None:
    for noise in NOISES:
        heads = " | ".join(f"+{jump:g}" for jump in noise.jumps)
        print(f"\n### {noise.name}: median delay by jump ({noise.unit})\n")
        print(f"| detector | streams with a false alarm in {BEFORE + AFTER:,} numbers, 95 % | {heads} |")
        print(f"|---|---:|{'---:|' * len(noise.jumps)}")
        for row in (row for row in rows if row.noise is noise):
            share = share_interval(row.alarmed, row.streams)
            delays = " | ".join(_delay(values) for values in row.delays.values())
            print(f"| {row.detector} | {share.estimate:.1%} [{share.low:.1%}, {share.high:.1%}] | {delays} |")


def _delay(delays: Floats) -> str:
    missed = int(np.isinf(delays).sum())
    middle = float(np.sort(delays)[len(delays) // 2])  # np.median would average infinities
    return f"{'none' if math.isinf(middle) else f'{middle:.0f}'}" + (f" ({missed} missed)" if missed else "")


def draw(rows: list[Row]) -> None:
    """Median delay by size of jump, one panel per noise."""
    from matplotlib.lines import Line2D

    from driftbandits.plots.frame import WITH_COMMAS, Frame, png, tidy

    key = {name: Line2D([], [], color=colour, marker="o", markersize=4) for name, colour in COLOURS.items()}
    frame = Frame(width=3.4)
    figure = frame.figure(len(NOISES), key)
    for number, noise in enumerate(NOISES):
        axes = frame.axes(figure, number)
        for row in (row for row in rows if row.noise is noise):
            middles = [float(np.sort(values)[len(values) // 2]) for values in row.delays.values()]
            found = [(jump, delay) for jump, delay in zip(noise.jumps, middles, strict=True) if math.isfinite(delay)]
            axes.plot(*zip(*found, strict=True), color=COLOURS[row.detector], marker="o", markersize=4)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(2, 1_000)
        axes.set_xticks(noise.jumps, [f"{jump:g}" for jump in noise.jumps], minor=False)
        axes.set_xticks([], minor=True)
        axes.yaxis.set_major_formatter(WITH_COMMAS)
        label = "median delay, numbers" if not number else ""
        tidy(axes, title=noise.name, xlabel=f"jump, {noise.unit}", ylabel=label)
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    FIGURE.write_bytes(png(figure))
    print(f"\nFigure: {FIGURE}")


def cost(detectors: dict[str, Callable[[int], Any]]) -> None:
    """Processor time per number, the least of three turns, and memory: of ranks kept one by one, and counted."""
    print(f"\n### Time per number, and memory after {LONG:,}\n")
    print("| detector | numbers | time | memory |\n|---|---|---:|---:|")
    rng = np.random.default_rng(FIRST_SEED)
    kinds = {"normal": rng.normal(size=LONG).tolist(), "0/1": (rng.random(LONG) < 0.1).astype(float).tolist()}
    for kind, numbers in kinds.items():
        for name in ("DriftDetector", "ADWIN", "Page-Hinkley"):
            seconds = min(_seconds(detectors[name](0), numbers) for _ in range(3))
            memory = _bytes(detectors[name], numbers)
            print(f"| {name} | {kind} | {1e6 * seconds / LONG:.2f} us | {memory / 1e6:.2f} MB |", flush=True)


def _seconds(detector: Any, numbers: list[float]) -> float:
    begun = time.process_time()
    for number in numbers:
        detector.update(number)
    return time.process_time() - begun


def _bytes(make: Callable[[int], Any], numbers: list[float]) -> int:
    """What a detector holds after a stream, as Python counts it: river's compiled parts are not seen."""
    gc.collect()
    tracemalloc.start()
    detector = make(0)
    for number in numbers:
        detector.update(number)
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return held


def run(*, quick: bool = False) -> None:
    print("\n## Drift detectors\n")
    try:
        detectors = makers()
    except ModuleNotFoundError:
        print("river is not installed: pip install river==0.26.1")
        return
    cost(detectors)
    streams = QUICK_STREAMS if quick else STREAMS
    rows = [measure(noise, name, make, streams) for noise in NOISES for name, make in detectors.items()]
    show(rows)
    draw(rows)
