"""Exponential weights: LinearExp3 with restarts, and Exp3.S.

Exp3 for linear bandits with periodic restarts: Restart-Adv of Cheung, Simchi-Levi and Zhu (2022).

symbol    name            shape, meaning
A         basis           (N, r) arms in orthonormal coordinates of their span, or the kernel's features
pi        design          (N,) exploration: the optimal design, with largest leverage g
L         losses          (N,) sums of estimated losses l = -y since the restart
eta       rate            sqrt(log N / (3 d H)), at most 1 / g
gamma     exploration     eta g, the share of the design in every law
q         exp(-eta L) normalised; P = (1 - gamma) q + gamma pi is the law
Q(P)      sum_a P_a a a' (+ regulariser I on a kernel)

The estimate of a round is A Q(P)^-1 a_t l_t, with the law P that a_t was drawn from. It is at most 1 / eta in size.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import numpy.typing as npt
import scipy.linalg

from driftbandits import state as states
from driftbandits._util.checks import check_count, check_flag, check_positive, check_probability
from driftbandits._util.guard import guarded
from driftbandits._util.linalg import Cholesky
from driftbandits.arms import ArmSet
from driftbandits.design import Design, solve_design
from driftbandits.design.blocks import law_factor
from driftbandits.errors import ConvergenceError, ConvergenceWarning, InputError, StateError
from driftbandits.policies.algorithm import UNTIL_TOLD, DeclaredState, Family, OneByOne, freeze
from driftbandits.policies.arm_migration import ArmsChange
from driftbandits.policies.base import Policy
from driftbandits.policies.decisions import Feedback, Row
from driftbandits.policies.inputs import CommonSettings
from driftbandits.policies.ucb.ucb import ArmMeans
from driftbandits.policies.window import SizedPolicy
from driftbandits.state.declared import array, count, number, part, read, write
from driftbandits.state.reader import ROUNDING, check_whole
from driftbandits.types import Floats

_DESIGN_REGULARISER = 1e-9  # beside points of mean square r: only there to keep the solver's matrix regular
_RANK_TOLERANCE = 1e-10


@dataclass
class _OpenLaw:
    """A law that decisions without a reward were drawn from, and how many there are."""

    law: Floats
    count: int
    factor: Cholesky | None = None


def restart_period(*, horizon: int, variation: float, dimension: float, arms: int) -> int:
    """Rounds between restarts: (T sqrt(3 d log N) / (2 V))^(2/3), in [1, T].

    It minimises 2 T sqrt(3 d log N / H) + 2 H V: the bound of Exp3 in T / H blocks and the drift inside them.

    >>> restart_period(horizon=10_000, variation=1.6, dimension=10, arms=100)
    1104
    """
    if horizon < 1 or arms < 1 or not (variation >= 0 and dimension >= 0):
        raise InputError(
            f"wants horizon and arms >= 1, variation and dimension >= 0, got {horizon!r}, {arms!r}, {variation!r}, "
            f"{dimension!r}"
        )
    difficulty = math.sqrt(3.0 * dimension * math.log(arms))
    if variation == 0 or difficulty == 0:
        return horizon
    return min(max(int((horizon * difficulty / (2.0 * variation)) ** (2 / 3)), 1), horizon)


class LinearExp3(SizedPolicy):
    """Exp3 for linear bandits (Lattimore and Szepesvari, chapter 27), forgetting everything every `restart` rounds.

    It assumes nothing about how rewards change, and pays for it by exploring a lot throughout: its bound
    2 sqrt(3 d H log N) is above 2,300 for d = 10, N = 100 and a single block of 10,000 rounds.

    Its defaults are not enough for horizons of 10,000 rounds, nor where rewards are not linear in the points: it must
    be told a longer horizon, and features in which they are (`kernel=True` takes the kernel's).

    Parameters
    ----------
    restart : H, rounds between restarts; by default from `variation` and the horizon, `restart_period`
    variation : V_T, the total drift of the reward function; knowledge that the ADA family does without
    kernel : False works on the arms' points, projected on their span, without an intercept; True on the kernel's
        features, with Q regularised by ridge / T and the effective dimension of the optimal design in the place of d
    ridge : lambda of the kernel version
    others : see `Policy`

    A late reward is weighted by the law it was asked under; after a restart it is counted in `late`. A round whose mask
    removed mass is answered, but neither learned from nor counted. Cost per round: O(N r^2).

    >>> policy = LinearExp3(ArmSet([[0.0], [0.5], [1.0]]), horizon=100, seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """

    family = Family.LINEAR
    needs_horizon = True
    counts_masked = False
    _needs_own_law = True
    _size_name: ClassVar[str] = "restart"

    def __init__(
        self,
        arms: ArmSet,
        *,
        restart: int | None = None,
        variation: float = 1.0,
        kernel: bool = False,
        ridge: float = 0.05,
        **common: Unpack[CommonSettings],
    ) -> None:
        super().__init__(arms, **common)
        self._size = None if restart is None else check_count("restart", restart)
        self.variation = check_positive("variation", variation, zero=True)
        self.kernel = check_flag("kernel", kernel)
        self.ridge = check_positive("ridge", ridge)
        self._number = 0

    @property
    def restart(self) -> int | None:
        """Rounds between restarts; None before the first round if it is to be computed."""
        return self._period if self._phase_length else self._size  # type: ignore[return-value]

    @property
    @guarded
    def design(self) -> Floats:
        """The law of exploration pi, shape (N,)."""
        self._begin_once()
        return self._design.copy()

    @property
    @guarded
    def design_leverage(self) -> float:
        """g, the largest leverage of an arm under the design: the dimension at the optimum."""
        self._begin_once()
        return self._leverage

    @property
    @guarded
    def rate(self) -> float:
        """Learning rate eta."""
        self._begin_once()
        return self._rate

    @property
    @guarded
    def exploration(self) -> float:
        """Share gamma of the design in every law."""
        self._begin_once()
        return self._exploration

    # --- blocks -------------------------------------------------------------------------------------------------

    def _start(self, horizon: int | None) -> None:
        if horizon is None:
            raise StateError("LinearExp3 needs a horizon")
        self._number += 1
        self._prepare(horizon)
        self._explore(*self._find_design())
        self._tune(int(self._resolve_size(horizon)))
        self._new_block()

    def _compute_size(self, horizon: int) -> int:
        return restart_period(horizon=horizon, variation=self.variation, dimension=self._dimension, arms=len(self.arms))

    def _prepare(self, horizon: int) -> None:
        """Coordinates of the arms, and the regulariser of Q."""
        self._basis = self.arms.features if self.kernel else span_coordinates(self.arms.points)
        self._regulariser = self.ridge / horizon if self.kernel else 0.0

    def _find_design(self) -> tuple[Floats, float, float]:
        """Optimal design, its largest leverage and its mean leverage, which is the (effective) dimension."""
        size, rank = self._basis.shape
        if rank == 0:
            return np.full(size, 1.0 / size), 0.0, 0.0
        regulariser = self._regulariser or _DESIGN_REGULARISER
        try:
            found = solve_design(self._basis, regulariser=regulariser, tolerance=1e-6)
        except ConvergenceError as error:
            found = error.best
            warnings.warn(
                f"exploring by a design with a gap of {found.gap:.2g}: {error}", ConvergenceWarning, stacklevel=2
            )
        return self._measure(found)

    def _measure(self, found: Design) -> tuple[Floats, float, float]:
        law = np.asarray(found.probabilities / found.probabilities.sum())
        factor = law_factor(self._basis, law, self._regulariser)
        half = scipy.linalg.solve_triangular(factor.factor, self._basis.T, lower=True)
        leverages = np.einsum("ij,ij->j", half, half)
        return law, float(leverages.max()), float(law @ leverages)

    def _explore(self, design: Floats, leverage: float, dimension: float) -> None:
        self._design, self._leverage, self._dimension = design, leverage, dimension

    def _tune(self, period: int) -> None:
        """eta and gamma for blocks of `period` rounds."""
        self._period = period
        if self._leverage == 0.0:
            self._rate, self._exploration = 0.0, 1.0
            return
        best = math.sqrt(math.log(len(self.arms)) / (3.0 * max(self._dimension, 1e-12) * period))
        self._rate = min(best, 1.0 / self._leverage)  # a shorter block would ask for gamma > 1
        self._exploration = min(self._rate * self._leverage, 1.0)

    def _new_block(self) -> None:
        self._block_start = self.rounds
        self._position = 0
        self._losses = np.zeros(len(self.arms))
        self._told = 0
        self._open: dict[int, _OpenLaw] = {}
        self._present: Floats | None = None

    # --- the hooks of Policy ------------------------------------------------------------------------------------

    def _law(self) -> Floats:
        if self._present is None:
            self._present = freeze(self._compute_law())
        return self._present

    def _compute_law(self) -> Floats:
        """(1 - gamma) exp(-eta L) / sum + gamma pi; the largest exponent is 0, so nothing overflows."""
        weights = np.exp(-self._rate * (self._losses - self._losses.min()))
        law = (1.0 - self._exploration) / weights.sum() * weights + self._exploration * self._design
        return np.asarray(law / law.sum())

    def _stamp(self) -> tuple[int, int]:
        return self._number, 0

    def _advance(self, count: int) -> None:
        self._position += count
        entry = self._open.get(self._number)
        if entry is not None:
            entry.count += count
            return
        self._open[self._number] = _OpenLaw(self._law(), count)

    def _quiet_rounds(self) -> int:
        return max(self._period - self._position, 1)

    def _due(self) -> bool:
        return self._position >= self._period and self._phase_left() > 0

    def _turn(self) -> None:
        self._new_block()
        self._number += 1

    def _learn(self, feedback: Feedback) -> None:
        for row, reward in feedback.rows():
            self._add(row.id, row.arm, row.law, row.tag, reward)
        self._number += 1

    def _learn_one(self, row: Row, reward: float) -> None:
        self._add(row.id, row.arm, row.law, row.tag, reward)
        self._number += 1

    def _add(self, ident: int, arm: int, number: int, tag: int, reward: float) -> None:
        if tag == -1:  # a mask had removed mass
            return
        entry = self._open.get(number)
        if ident < self._block_start or entry is None:
            self.late += 1
            return
        if entry.factor is None and self._basis.shape[1]:
            entry.factor = law_factor(self._basis, entry.law, self._regulariser)
        if entry.factor is not None:
            self._losses -= self._basis @ entry.factor.solve(self._basis[arm] * reward)
        self._told += 1
        self._present = None
        self._release(number, entry)

    def _release(self, number: int, entry: _OpenLaw) -> None:
        entry.count -= 1
        if entry.count == 0:
            del self._open[number]

    def _lose(self, rows: npt.NDArray[np.void]) -> None:
        for ident, law, tag in zip(rows["id"].tolist(), rows["law"].tolist(), rows["tag"].tolist(), strict=True):
            entry = self._open.get(law)
            if entry is not None and tag != -1 and ident >= self._block_start:
                self._release(law, entry)

    def _estimate(self) -> Floats:
        """Mean of the estimates since the restart: unbiased, and of large variance."""
        return np.asarray(-self._losses / max(self._told, 1))

    # --- state --------------------------------------------------------------------------------------------------

    def _carry(self, old: Self, change: ArmsChange) -> None:
        """A new start, for losses are estimated by laws over the old arms; the numbers of laws go on."""
        self._number = old._number
        self._start_with_arms(change)

    _saved = (
        count("number"),
        count("block_start", low="phase_start", high="rounds"),
        count("position", high="period"),
        array("losses"),
        count("told", high="position"),
    )

    def _export(self) -> dict[str, Any]:
        return {
            **write(self._saved, self),
            "horizon": self._phase_length,
            "design": self._design.copy(),
            "leverage": self._leverage,
            "dimension": self._dimension,
            "period": self._period,
            "open": {
                "numbers": np.array(list(self._open), dtype=np.int64),
                "counts": np.array([entry.count for entry in self._open.values()], dtype=np.int64),
                "laws": np.array([entry.law for entry in self._open.values()]).reshape(-1, len(self.arms)),
            },
        }

    def _import(self, state: states.Reader) -> None:
        self._prepare(state.integer("horizon", low=self._phase_length, high=self._phase_length))
        self._explore(state.law("design", len(self.arms)), state.number("leverage"), state.number("dimension"))
        self._check_design()
        self._tune(state.integer("period", low=1))
        states.check(self._size in (None, self._period), "period")
        self._new_block()
        read(self._saved, self, state, {})
        states.check(self._position <= self.rounds - self._block_start, "position")
        self._import_open(state)
        # no estimate of a round is larger than 1 / eta, see above
        largest = max(1.0 / self._rate if self._rate > 0.0 else 0.0, self._leverage)
        states.check(bool((np.abs(self._losses) <= 2.0 * self._told * largest).all()), "losses")

    def _check_design(self) -> None:
        """Refuse measures that no design has; the mean leverage is the rank, less what a regulariser takes of it."""
        rank = self._basis.shape[1]
        slack = ROUNDING * max(rank, 1)
        fine = self._leverage >= self._dimension - slack and self._dimension <= rank + slack
        states.check(fine and (self._dimension > 0.0 if rank else self._leverage == 0.0), "leverages of the design")

    def _import_open(self, state: states.Reader) -> None:
        size = len(self.arms)
        open_laws = state.reader("open")
        numbers = open_laws.array("numbers", np.int64, (None,))
        counts = open_laws.array("counts", np.int64, numbers.shape)
        laws = open_laws.array("laws", np.float64, (len(numbers), size))
        if (counts < 1).any() or (laws < 0).any() or (np.abs(laws.sum(axis=1) - 1.0) > 1e-9).any():
            raise StateError("state.engine.open has counts below 1 or laws that are not probabilities")
        check_whole(counts, self._position - self._told, "decisions without a reward")
        inside = (numbers >= 0) & (numbers <= self._number)
        states.check(bool(inside.all() and (np.diff(numbers) > 0).all()), "numbers of open laws")
        explored = (1.0 - ROUNDING) * self._exploration * self._design
        states.check(bool((laws >= explored - 1e-12).all()), "exploration of open laws")
        self._open = {
            int(number): _OpenLaw(law, int(count)) for number, count, law in zip(numbers, counts, laws, strict=True)
        }


def span_coordinates(points: Floats) -> Floats:
    """The points in orthonormal coordinates of their span, scaled to mean square r; shape (N, r).

    Exp3's estimates do not depend on the coordinates, its linear algebra does.

    >>> span_coordinates(np.array([[1.0, 1.0], [2.0, 2.0]])).shape
    (2, 1)
    """
    left, values, _ = np.linalg.svd(points, full_matrices=False)
    kept = values > _RANK_TOLERANCE * values.max(initial=0.0)
    return np.ascontiguousarray(left[:, kept] * math.sqrt(len(points)))


def exp3s_exploration(*, horizon: int, switches: float, arms: int) -> float:
    """Gamma of Exp3.S: min(1, sqrt(N (S log(N T) + e) / ((e - 1) T))), S = switches + 1 stretches (their Cor. 8.2).

    >>> round(exp3s_exploration(horizon=10_000, switches=1, arms=10), 3)
    0.122
    """
    hardness = (switches + 1.0) * math.log(arms * horizon) + math.e
    return min(1.0, math.sqrt(arms * hardness / ((math.e - 1.0) * horizon)))


class Exp3S(DeclaredState, OneByOne, Policy):
    """Exp3.S (Auer, Cesa-Bianchi, Freund and Schapire 2002): law (1 - gamma) w / sum(w) + gamma / N.

    A reward x in [0, 1] of arm a, drawn with probability p, multiplies w_a by exp(gamma x / (N p)); then every weight
    gains e alpha / N times the sum of all, which bounds how long a switch takes to follow. Weights are kept as
    logarithms.

    It assumes only the range of the rewards, and pays for it: with the default exploration, a hundred arms and
    ten thousand rounds, four rounds in ten are uniform draws. A control, not a recommendation.

    Its defaults are not enough with a hundred arms and 10,000 rounds: it must be told a horizon many times as long.

    Parameters
    ----------
    switches : how often the best arm changes, to compute gamma from; knowledge that the ADA family does without
    exploration : gamma in (0, 1]; by default from `switches` and the horizon, `exp3s_exploration`
    share : alpha; by default 1 / horizon
    others : see `Policy`

    A reward counts whenever it comes, over the probability its arm was drawn with. `estimate` is the mean of all
    rewards of each arm; the law does not use it. Cost per round: O(N).

    >>> policy = Exp3S(ArmSet([[0.0], [1.0]]), horizon=1000, seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """

    family = Family.PLAIN

    def __init__(
        self,
        arms: ArmSet,
        *,
        switches: float = 1,
        exploration: float | None = None,
        share: float | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(arms, **settings)
        self.switches = check_positive("switches", switches, zero=True)
        self._given_exploration = (
            None if exploration is None else check_probability("exploration", exploration, one=True)
        )
        self._given_share = None if share is None else check_positive("share", share, zero=True)
        self.needs_horizon = exploration is None or share is None

    @property
    def exploration(self) -> float | None:
        """The gamma in use; None before the first round if it is to be computed."""
        return self._gamma if self._phase_length else self._given_exploration

    @property
    def share(self) -> float | None:
        """The alpha in use; None before the first round if it is to be computed."""
        return self._alpha if self._phase_length else self._given_share

    def _start(self, horizon: int | None) -> None:
        size = len(self.arms)
        gamma, alpha = self._given_exploration, self._given_share
        if horizon is not None:
            if gamma is None:
                gamma = exp3s_exploration(horizon=horizon, switches=self.switches, arms=size)
            if alpha is None:
                alpha = 1.0 / horizon
        if gamma is None or alpha is None:
            raise InputError("exploration=None and share=None need a horizon")
        self._gamma, self._alpha = gamma, alpha
        self._first = self.rounds
        self._log_weights: Floats = np.full(size, -math.log(size))  # the weights sum to 1
        self._means = ArmMeans(size)

    def _law(self) -> Floats:
        weights = np.exp(self._log_weights)
        return np.asarray((1.0 - self._gamma) / weights.sum() * weights + self._gamma / len(weights))

    def _quiet_rounds(self) -> int:
        return UNTIL_TOLD

    def _learn_one(self, row: Row, reward: float) -> None:
        if row.id < self._first:
            self.late += 1
            return
        size = len(self.arms)
        logs = self._log_weights
        logs[row.arm] += self._gamma / size * (0.5 * (reward + 1.0) / row.probability)
        if self._alpha > 0.0:  # the share is of the sum before this reward, which is 1
            logs = np.logaddexp(logs, math.log(self._alpha / size) + 1.0)
        top = float(logs.max())
        self._log_weights = logs - (top + math.log(float(np.exp(logs - top).sum())))
        self._means.shift(row.arm, 1.0, reward)

    def _estimate(self) -> Floats:
        return self._means.mean

    def _setting(self, name: str) -> Any:
        return super()._setting(name if name == "switches" else f"_given_{name}")

    _saved = (
        array("log_weights", np.float64, ("arms",)),
        number("gamma"),
        number("alpha"),
        count("first", low="phase_start", high="rounds"),
        part("means"),
    )

    def _prepare_state(self) -> None:
        self._means = ArmMeans(len(self.arms))

    def _check_state(self) -> None:
        gamma, alpha = self._given_exploration, self._given_share
        if gamma is None:
            gamma = exp3s_exploration(horizon=self._phase_length, switches=self.switches, arms=len(self.arms))
        alpha = 1.0 / self._phase_length if alpha is None else alpha
        states.check(math.isclose(self._gamma, gamma, rel_tol=ROUNDING), "exploration")
        states.check(math.isclose(self._alpha, alpha, rel_tol=ROUNDING), "share")
        check_whole(self._means.weights, self._most_told(self._first), "number of rewards")
        self._check_logarithms()

    @np.errstate(all="ignore")
    def _check_logarithms(self) -> None:
        """Refuse weights that do not sum to 1, and open decisions that no law can have drawn."""
        total = float(np.exp(self._log_weights).sum())
        states.check(abs(total - 1.0) <= ROUNDING, "weights")
        rows = self._awaited()
        drawn = rows["probability"][rows["id"] >= self._first]
        states.check(bool((drawn >= (1.0 - ROUNDING) * self._gamma / len(self.arms)).all()), "pending probabilities")
