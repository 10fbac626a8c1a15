"""Windows and discounts on environment 1, over the paper's grids: is the one that the paper names the best?

On tuning seeds: this is about what a search finds, and no figure is drawn from it. SW-GPUCB has the ridge and scale of
the authors' files, which an equal search found again; WGPUCB plays with the authors' and with those that were found.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from driftbandits.experiments.definitions.ids import ENVIRONMENT_1, PAPER_TITLES
from driftbandits.experiments.definitions.paper import PUBLISHED_DIMENSION
from driftbandits.experiments.definitions.rows import SW_GPUCB_PUBLISHED, WGPUCB_PUBLISHED
from driftbandits.experiments.definitions.seeds import TUNING_SEEDS
from driftbandits.experiments.definitions.specs import HORIZON, Experiment, PolicySpec, by_id
from driftbandits.experiments.definitions.tuned_settings import tuned_spec

WINDOWS = (100, 200, 500, 1_000, 2_000, 3_000, 4_000, 5_000, 7_000, 10_000)
DISCOUNTS = (0.99, 0.995, 0.999, 0.9995, 0.9999)
PAPER_WINDOW, PAPER_DISCOUNT = 3_000, 0.9995
SIZES_OF_WINDOWS, SIZES_OF_DISCOUNTS = "sizes/windows", "sizes/discounts"
WGPUCB_TUNED = tuned_spec("WGPUCB", PUBLISHED_DIMENSION)


def sized(row: PolicySpec, setting: str, size: float) -> PolicySpec:
    """A row with this window or discount.

    >>> sized(SW_GPUCB_PUBLISHED, "window", 500).label
    'SW-GPUCB (published, window 500)'
    """
    label = f"{row.label.removesuffix(')')}, {setting} {size:g})"
    return dataclasses.replace(row, label=label, settings={**row.settings, setting: size})


def _experiment(name: str, title: str, rows: Sequence[PolicySpec]) -> Experiment:
    return Experiment(
        id=name,
        title=f"{PAPER_TITLES[ENVIRONMENT_1]}, {title}",
        environment=ENVIRONMENT_1,
        settings={"dimension": PUBLISHED_DIMENSION, "horizon": HORIZON},
        policies=tuple(rows),
        seeds=TUNING_SEEDS[:16],
    )


BEST_SIZES: dict[str, Experiment] = by_id(
    (
        _experiment(SIZES_OF_WINDOWS, "windows", [sized(SW_GPUCB_PUBLISHED, "window", w) for w in WINDOWS]),
        _experiment(
            SIZES_OF_DISCOUNTS,
            "discounts",
            [sized(row, "discount", eta) for row in (WGPUCB_PUBLISHED, WGPUCB_TUNED) for eta in DISCOUNTS],
        ),
    )
)
