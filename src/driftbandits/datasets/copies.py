"""The ways to play a panel: as observed, and the controls that tell adapting from luck."""

from __future__ import annotations

import numpy as np

from driftbandits.datasets.cells import Cells
from driftbandits.datasets.panel import Panel
from driftbandits.datasets.replay import SeriesReplay
from driftbandits.seeding import stream
from driftbandits.types import Floats, Ints


def as_observed(panel: Panel, rounds: Ints, seed: int) -> SeriesReplay:
    """The rounds as they were."""
    del seed
    return _replay(panel, rounds, "")


def reversed_in_time(panel: Panel, rounds: Ints, seed: int) -> SeriesReplay:
    """The last round first: change stays change, trends turn around."""
    del seed
    return _replay(panel, rounds[::-1], "/reversed")


def shuffled(panel: Panel, rounds: Ints, seed: int) -> SeriesReplay:
    """Blocks of rounds in random order: what a block shares stays, what lasts longer than a block is destroyed."""
    # replicates overlap, so each gets its own order, or they would share their luck
    draws = stream(seed, "datasets", panel.name, "shuffled", int(rounds[0]))
    order = draws.permutation(-(-len(rounds) // panel.block))
    blocks = np.split(rounds, np.arange(panel.block, len(rounds), panel.block))
    return _replay(panel, np.concatenate([blocks[each] for each in order]), "/shuffled")


def semi_real(panel: Panel, rounds: Ints, seed: int) -> SeriesReplay:
    """Known truth with real residuals: a moving average, plus recorded residuals of blocks drawn with replacement.

    y_t(x) = S_t(x) + e_s(x), where S is the mean of arm x over the rounds within `panel.smoothing` of t and e_s(x) a
    reward recorded in round s less S_s(x), centred for every arm; s runs through blocks drawn with replacement, the
    same for all arms, and the arms offered are those of s. The truth is S. Rewards may leave the panel's range: the
    world declares its own.
    """
    cells = panel.cells.rows(rounds)
    truth = moving_average(cells.means, panel.smoothing)
    draws = stream(seed, "datasets", panel.name, "semi-real", int(rounds[0]))
    source = _resampled(len(rounds), panel.block, draws)
    centre = np.nanmean(cells.means - truth, axis=0)
    drawn = cells.rows(source)
    usable = drawn.offered & np.isfinite(truth)
    drawn = Cells(drawn.values, drawn.first, np.where(usable, drawn.count, 0), drawn.means)
    shift = truth - truth[source] - centre
    low, high = drawn.ends()
    return SeriesReplay(
        panel.arms,
        drawn,
        means=truth,
        shift=shift,
        reward_range=(float(np.nanmin(low + shift)), float(np.nanmax(high + shift))),
        name=f"{panel.name}/semi-real",
    )


def moving_average(table: Floats, reach: int) -> Floats:
    """Mean of each column over the rows within `reach` of each, passing over NaN; NaN where there is nothing.

    >>> moving_average(np.array([[0.0], [1.0], [np.nan], [4.0]]), 1)[:, 0]
    array([0.5, 0.5, 2.5, 4. ])
    """
    there = np.isfinite(table)
    sums, counts = (
        np.concatenate([np.zeros((1, table.shape[1])), np.cumsum(part, axis=0)])
        for part in (np.where(there, table, 0.0), there.astype(np.float64))
    )
    rows = np.arange(len(table))
    start, stop = np.maximum(rows - reach, 0), np.minimum(rows + reach + 1, len(table))
    count = counts[stop] - counts[start]
    average: Floats = np.where(count > 0, (sums[stop] - sums[start]) / np.maximum(count, 1.0), np.nan)
    return average


def _resampled(length: int, block: int, draws: np.random.Generator) -> Ints:
    """Rounds of whole blocks drawn with replacement; blocks keep their phase, so that a day begins with a morning."""
    starts = block * draws.integers(length // block, size=-(-length // block))
    return np.asarray((starts[:, None] + np.arange(block)).ravel()[:length], dtype=np.int64)


def _replay(panel: Panel, rounds: Ints, suffix: str) -> SeriesReplay:
    return SeriesReplay(
        panel.arms, panel.cells.rows(rounds), reward_range=panel.reward_range, name=f"{panel.name}{suffix}"
    )
