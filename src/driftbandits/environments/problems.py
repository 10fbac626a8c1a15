"""Problems of others, by the means their authors give: in pieces, arms that have nothing in common, 0/1 rewards."""

from __future__ import annotations

from typing import Any, Self

from driftbandits._util.checks import check_count
from driftbandits._util.seeding import check_seed
from driftbandits.arms.arm_set import ArmSet
from driftbandits.environments.noise import BernoulliNoise
from driftbandits.environments.reward_functions import SphereWorld
from driftbandits.environments.switching import Piecewise
from driftbandits.errors import InputError

# Of SMPyBandits (Besson 2018), by number: where segments begin, as shares of the horizon, and the means of each.
# 3 is of Mukherjee and Maillard (2019), 5 of Cao, Wen, Kveton and Xie (2019), after Yahoo!'s clicks.
_FIFTHS = (0.0, 0.2, 0.4, 0.6, 0.8)
PROBLEMS: dict[int, tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]] = {
    0: (_FIFTHS, ((0.1, 0.2), (0.1, 0.3), (0.5, 0.3), (0.4, 0.3), (0.3, 0.9))),
    1: (_FIFTHS, ((0.3, 0.5, 0.9), (0.3, 0.2, 0.9), (0.3, 0.2, 0.1), (0.7, 0.2, 0.1), (0.7, 0.5, 0.1))),
    2: (_FIFTHS, ((0.4, 0.5, 0.9), (0.5, 0.4, 0.7), (0.6, 0.3, 0.5), (0.7, 0.2, 0.3), (0.8, 0.1, 0.1))),
    3: ((0.0, 0.25, 0.5, 0.75), ((0.1, 0.2, 0.9), (0.4, 0.9, 0.1), (0.5, 0.1, 0.2), (0.2, 0.2, 0.3))),
    4: (
        (0.0, 0.5, 0.625, 0.75, 0.875),
        ((0.1, 0.5, 0.9), (0.3, 0.4, 0.1), (0.5, 0.3, 0.2), (0.7, 0.4, 0.3), (0.1, 0.5, 0.2)),
    ),
    5: (
        tuple(k / 9 for k in range(9)),
        (
            (0.071, 0.041, 0.032, 0.030, 0.020, 0.011),
            (0.055, 0.053, 0.032, 0.030, 0.008, 0.011),
            (0.040, 0.063, 0.032, 0.030, 0.008, 0.011),
            (0.040, 0.042, 0.043, 0.030, 0.008, 0.011),
            (0.030, 0.032, 0.055, 0.030, 0.008, 0.011),
            (0.030, 0.032, 0.020, 0.030, 0.008, 0.021),
            (0.020, 0.022, 0.020, 0.045, 0.008, 0.021),
            (0.020, 0.022, 0.020, 0.057, 0.008, 0.011),
            (0.020, 0.022, 0.034, 0.057, 0.022, 0.011),
        ),
    ),
}


class SMPyBanditsProblem(Piecewise, SphereWorld):
    """A non-stationary problem of SMPyBandits: two to six arms with 0/1 rewards, whose means jump at given shares.

    Arms have nothing in common, and nothing is drawn but the noise.

    Parameters
    ----------
    problem : its number there, 0 to 5
    horizon : T; switches come at the same shares of it
    name : what tables and plots call this world

    Raises
    ------
    InputError
        For another number, and a horizon that is too short for the segments.

    >>> world = SMPyBanditsProblem(1, horizon=2_000)
    >>> world.change_rounds, world.means(0)
    (array([ 400,  800, 1200, 1600]), array([[0.3, 0.5, 0.9]]))
    """

    def __init__(self, problem: int = 1, *, horizon: int = 10_000, name: str = "smpybandits") -> None:
        if problem not in PROBLEMS:
            raise InputError(f"problem must be one of {', '.join(map(str, PROBLEMS))}, got {problem!r}")
        self._problem = problem
        starts, values = PROBLEMS[problem]
        rounds = check_count("horizon", horizon, least=len(starts))
        arms = ArmSet.separate([f"arm {number}" for number in range(len(values[0]))])
        switches = [int(share * rounds) for share in starts[1:]]
        super().__init__(arms, values, horizon=rounds, switches=switches, noise=BernoulliNoise(), name=name)

    @classmethod
    def sample(cls, *, seed: int | None = 0, horizon: int = 10_000, **settings: Any) -> Self:
        """The problem; a seed draws nothing but the noise of a run.

        Parameters
        ----------
        seed : not needed
        horizon : T
        settings : those of the class

        Returns
        -------
        a world of this class
        """
        check_seed(seed)
        return cls(horizon=horizon, **settings)

    def _settings(self) -> dict[str, Any]:
        return {"problem": self._problem, "horizon": self._horizon}
