"""DriftDetector beside river's ADWIN, Page-Hinkley and KSWIN: false alarms, delays by size of jump, time per number.

river's have the settings they come with and, as a second row each, one that keeps the promise of DriftDetector on this
noise (`benchmarks.detector_rivals`). All see the same streams (`benchmarks.detector_streams`). Seeds: DriftDetector's
bets were chosen on seeds below 120, river's settings on 1,310,000 and after; those here are others. `--quick` has
20 streams instead of 200; `python -m reproduction measure detectors` writes the tables of the page, and draws.
"""

from __future__ import annotations

import copy
import gc
import math
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.detector_rivals import MATCHED, OWN, SETTINGS, Make, makers, quick_kswin
from benchmarks.detector_streams import AFTER, KINDS, Kind
from driftbandits._util.intervals import ConfidenceInterval, share_interval
from driftbandits.experiments.seeds import EVALUATION
from driftbandits.types import Floats
from reproduction.measured import key_of, markdown_table

STREAMS, QUICK_STREAMS = 200, 20
FIRST_SEED = EVALUATION.first + 30_000
LONG = 60_000  # numbers of the stream on which time and memory are measured
FIGURE = Path("docs/figures/detectors.png")
COLOURS = {OWN: "#EE3377", "ADWIN": "#0077BB", "Page-Hinkley": "#EE7733", "KSWIN": "#009988"}
TELLING = 0.05  # share of streams with a false alarm above which a delay says nothing


@dataclass(frozen=True)
class Row:
    """One detector on the streams of one kind: false alarms, and a delay per stream and jump."""

    kind: Kind
    detector: str
    alarmed: int  # still streams that had an alarm
    streams: int
    delays: dict[float, Floats]  # infinite where nothing was found

    @property
    def false_alarms(self) -> ConfidenceInterval:
        """Share of the still streams."""
        return share_interval(self.alarmed, self.streams)

    def quantile(self, jump: float, share: float) -> float:
        """Of the delays; infinite where too few found the change."""
        delays = np.sort(self.delays[jump])
        return float(delays[min(int(share * len(delays)), len(delays) - 1)])


# --- measuring ------------------------------------------------------------------------------------------------------


def first_alarm(detector: Any, numbers: Sequence[float]) -> float:
    """Place of the first alarm, counted from 1; infinite if there is none."""
    for place, number in enumerate(numbers):
        detector.update(number)
        if detector.drift_detected:
            return place + 1
    return math.inf


def alarms_of(kind: Kind, make: Make, seed: int) -> list[float]:
    """First alarm of a still stream, and the delay after every jump; all streams begin alike."""
    detector, false_alarm = make(seed), math.inf
    for place, number in enumerate(kind.first(seed)):
        detector.update(number)
        if detector.drift_detected:
            false_alarm = min(false_alarm, place + 1)
    still, *delays = (first_alarm(copy.deepcopy(detector), kind.then(seed, jump)) for jump in (0.0, *kind.jumps))
    return [min(false_alarm, kind.before + still), *delays]


def measure(kind: Kind, name: str, make: Make, streams: int) -> Row:
    found = np.array([alarms_of(kind, make, FIRST_SEED + number) for number in range(streams)])
    delays = {jump: found[:, 1 + k] for k, jump in enumerate(kind.jumps)}
    return Row(kind, name, int(np.isfinite(found[:, 0]).sum()), streams, delays)


# --- showing --------------------------------------------------------------------------------------------------------


def tables_of(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Losses, and a table of every kind of streams, as lines of Markdown."""
    heads = ["streams", "jump", "detector", "median delay", "DriftDetector"]
    tables = {"losses": markdown_table(heads, list(losses(rows)))}
    for kind in KINDS:
        alarms = f"streams with a false alarm in {kind.before + AFTER:,} numbers, 95 %"
        own = [row for row in rows if row.kind is kind]
        tables[key_of(kind.name)] = markdown_table(
            ["detector", alarms, *(f"+{jump:g}" for jump in kind.jumps)],
            [[row.detector, _share(row.false_alarms), *(_delay(row, jump) for jump in kind.jumps)] for row in own],
        )
    return tables


def _share(share: ConfidenceInterval) -> str:
    return f"{share.estimate:.1%} [{share.low:.1%}, {share.high:.1%}]"


def losses(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """Cells in which a detector that hardly alarms without a change has the shorter median delay."""
    own = {row.kind.name: row for row in rows if row.detector == OWN}
    for row in rows:
        for jump in row.kind.jumps:
            theirs, ours = row.quantile(jump, 0.5), own[row.kind.name].quantile(jump, 0.5)
            if theirs < ours and row.false_alarms.estimate <= TELLING:
                yield row.kind.name, f"+{jump:g}", row.detector, _number(theirs), _number(ours)


def _number(delay: float) -> str:
    return "not found" if math.isinf(delay) else f"{delay:.0f}"


def _delay(row: Row, jump: float) -> str:
    missed = int(np.isinf(row.delays[jump]).sum())
    return _number(row.quantile(jump, 0.5)) + (f" ({missed} missed)" if missed else "")


def draw(rows: Sequence[Row]) -> None:
    """Median delay by size of jump, one panel per kind of stream; dotted: who alarms in too many still streams."""
    from matplotlib.lines import Line2D

    from driftbandits.plots.frame import WITH_COMMAS, Frame, png, tidy

    key = {name: Line2D([], [], color=colour, marker="o", markersize=3.5) for name, colour in COLOURS.items()}
    for name in SETTINGS:
        key[name + MATCHED] = Line2D([], [], color=COLOURS[name], marker="o", markersize=3.5, linestyle="--")
    key[f"false alarms in more than {100 * TELLING:g} % of the streams"] = Line2D(
        [], [], color="#777777", linestyle=":"
    )
    kinds = [kind for kind in KINDS if kind.before == KINDS[0].before]
    frame = Frame(width=3.2, height=2.2)
    figure = frame.figure(len(kinds), key)
    for number, kind in enumerate(kinds):
        axes = frame.axes(figure, number)
        for row in (row for row in rows if row.kind is kind):
            _line(axes, row, key[row.detector])
        axes.set(xscale="log", yscale="log", ylim=(3, 1_000), xlim=(0.85 * kind.jumps[0], 1.18 * kind.jumps[-1]))
        axes.set_xticks(kind.jumps, [f"{jump:g}" for jump in kind.jumps], minor=False)
        axes.set_xticks([], minor=True)
        axes.yaxis.set_major_formatter(WITH_COMMAS)
        label = "median delay, numbers" if not number % 2 else ""
        tidy(axes, title=kind.name, xlabel=f"jump, {kind.unit}", ylabel=label)
    FIGURE.write_bytes(png(figure))
    print(f"\nFigure: {FIGURE}")


def _line(axes: Any, row: Row, sample: Any) -> None:
    medians = ((jump, row.quantile(jump, 0.5)) for jump in row.kind.jumps)
    there = [(jump, delay) for jump, delay in medians if math.isfinite(delay)]
    telling = row.false_alarms.estimate <= TELLING
    style = {"linestyle": sample.get_linestyle(), "linewidth": 1.4} if telling else {"linestyle": ":", "linewidth": 0.9}
    if there:
        axes.plot(
            *zip(*there, strict=True), marker="o", markersize=3.5 if telling else 2, color=sample.get_color(), **style
        )


# --- cost -----------------------------------------------------------------------------------------------------------


def cost(detectors: dict[str, Make]) -> list[str]:
    """Processor time per number, the least of three turns, and memory: of ranks kept one by one, and counted."""
    rng = np.random.default_rng(FIRST_SEED)
    kinds = {"normal": rng.normal(size=LONG).tolist(), "0/1": (rng.random(LONG) < 0.1).astype(float).tolist()}
    lines = []
    for kind, numbers in kinds.items():
        for name in (OWN, "ADWIN", "Page-Hinkley", "KSWIN"):
            some = numbers if name != "KSWIN" else numbers[: LONG // 20]
            seconds = min(_seconds(detectors[name](0), some) for _ in range(3))
            memory = _bytes(detectors[name], some)
            lines.append([name, kind, f"{1e6 * seconds / len(some):.2f} us", f"{memory / 1e6:.2f} MB"])
    return markdown_table(["detector", "numbers", "time", "memory"], lines)


def _seconds(detector: Any, numbers: Sequence[float]) -> float:
    begun = time.process_time()
    for number in numbers:
        detector.update(number)
    return time.process_time() - begun


def _bytes(make: Make, numbers: Sequence[float]) -> int:
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


def measured(streams: int = STREAMS) -> tuple[Sequence[int], dict[str, list[str]]]:
    """Seeds and tables; the figure is drawn with them."""
    with quick_kswin():
        rows = [measure(kind, name, make, streams) for kind in KINDS for name, make in makers(kind.noise).items()]
    if streams == STREAMS:
        draw(rows)
    return range(FIRST_SEED, FIRST_SEED + streams), {**tables_of(rows), "cost": cost(makers(KINDS[0].noise))}


def run(*, quick: bool = False) -> None:
    try:
        import river  # noqa: F401
    except ModuleNotFoundError:
        print("river is not installed: pip install river==0.26.1")
        return
    for name, lines in measured(QUICK_STREAMS if quick else STREAMS)[1].items():
        print(f"\n### {name}\n", *lines, sep="\n")
