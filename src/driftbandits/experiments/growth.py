"""Table 1 as experiments: how fast regret grows with the rounds T, the segments L_T and the variation V_T.

With g = gamma log N, the paper bounds ADA-OPKB's regret by min(sqrt(g L_T T), (g V_T)^(1/3) T^(2/3) + sqrt(g T)) up to
logarithms, so on a log-log sweep the slopes must not exceed 1/2 and 2/3 in T, 1/2 in L_T and 1/3 in V_T. All sweeps are
at d = 2, where gamma grows with log T only.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from driftbandits.experiments.specs import Experiment, PolicySpec

SEEDS = tuple(range(20))
ROUNDS = (2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000)
SEGMENTS = (1, 2, 4, 8, 16)
TURNS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the cosine's phase over the whole run; the variation is proportional to it
LONG = 64_000  # rounds of the sweeps over L_T and V_T: blocks must fit between changes
POLICIES = (
    PolicySpec("ADA-OPKB", "AdaOPKB"),
    PolicySpec("ADA-OPKB (published)", "AdaOPKB", {"constants": "published", "variant": "published"}),
    PolicySpec("ADA-OPNN (infinite width)", "AdaOPNN", {"width": "infinite", "train": False}),
)


@dataclass(frozen=True)
class Sweep:
    """Experiments that differ in one quantity: its symbol, its values, and the slope the paper's rate allows."""

    id: str
    title: str
    symbol: str
    values: tuple[float, ...]
    rate: float
    experiments: tuple[Experiment, ...]


def _redraws(segments: int, horizon: int) -> dict[str, Any]:
    switches = [horizon * k // segments for k in range(1, segments)]
    return {"dimension": 2, "horizon": horizon, "switches": switches, "kind": "redraw"}


def _turning(turns: float, horizon: int) -> dict[str, Any]:
    phase = [[0, 0.0], [horizon, 2 * math.pi * turns]]
    return {"dimension": 2, "size": 100, "horizon": horizon, "phase": phase}


def _experiment(sweep: str, value: float, title: str, environment: str, settings: Mapping[str, Any]) -> Experiment:
    return Experiment(f"{sweep}/{value:g}", title, environment, settings, POLICIES, SEEDS)


SWEEPS: tuple[Sweep, ...] = (
    Sweep(
        id="growth/rounds",
        title="rounds, four segments",
        symbol="T",
        values=ROUNDS,
        rate=1 / 2,
        experiments=tuple(
            _experiment("growth/rounds", t, f"Four segments, T = {t:,}", "switching", _redraws(4, t)) for t in ROUNDS
        ),
    ),
    Sweep(
        id="growth/drifting-rounds",
        title="rounds, one turn of drift",
        symbol="T",
        values=ROUNDS,
        rate=2 / 3,
        experiments=tuple(
            _experiment("growth/drifting-rounds", t, f"One turn of drift, T = {t:,}", "cosine", _turning(1.0, t))
            for t in ROUNDS
        ),
    ),
    Sweep(
        id="growth/segments",
        title=f"segments, T = {LONG:,}",
        symbol="L_T",
        values=SEGMENTS,
        rate=1 / 2,
        experiments=tuple(
            _experiment("growth/segments", s, f"L_T = {s}, T = {LONG:,}", "switching", _redraws(s, LONG))
            for s in SEGMENTS
        ),
    ),
    Sweep(
        id="growth/variation",
        title=f"variation, T = {LONG:,}",
        symbol="V_T",
        values=TURNS,
        rate=1 / 3,
        experiments=tuple(
            _experiment("growth/variation", v, f"{v:g} turns of drift, T = {LONG:,}", "cosine", _turning(v, LONG))
            for v in TURNS
        ),
    ),
)


def quick_sweep(sweep: Sweep) -> Sweep:
    """A taste: two seeds, horizons up to 16,000 rounds."""
    kept = [
        (value, dataclasses.replace(e, seeds=e.seeds[:2]))
        for value, e in zip(sweep.values, sweep.experiments, strict=True)
        if e.settings["horizon"] <= 16_000
    ]
    return dataclasses.replace(sweep, values=tuple(v for v, _ in kept), experiments=tuple(e for _, e in kept))
