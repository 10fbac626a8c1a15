"""The linear half of Table 1 as experiments: growth in T, L_T, V_T and d, for each row against its own bound.

Only the leading term of a bound counts, without logarithms: in its place d sqrt(L_T T) where theta jumps, and
d^(2/3) V_T^(1/3) T^(2/3) where it turns, for ADA-OPKB, the rates of the lower bounds. Both are about infinitely many
arms, log N of the order of d; so along the sweeps over d the sphere has N = 3^d arms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from driftbandits.experiments.definitions.bounds import Bound, PowerLaw, Sweep, WorldSize, bounded, row_of
from driftbandits.experiments.definitions.linear import LINEAR_PREFIX, SPHERE_DIMENSION, theory_rivals
from driftbandits.experiments.definitions.linear_worlds import LinearSetting, flipping, turning
from driftbandits.experiments.definitions.rows import ADA_OPKB, ADA_OPKB_PUBLISHED
from driftbandits.experiments.definitions.specs import HORIZON, Experiment, PolicySpec, by_id

SEEDS = tuple(range(6))
ROUNDS = (2_000, 4_000, 8_000, 16_000, 32_000)
SEGMENTS = (2, 4, 8, 16, 32)  # from 2: with one segment V_T is 0, and bounds in it have no logarithm
TURNS = (0.25, 0.5, 1.0, 2.0, 4.0)
DIMENSIONS = (2, 3, 4, 5, 6)
LONG_HORIZON = 16_000  # of the sweeps over L_T and V_T
ARMS_PER_DIMENSION = 3  # N is this to the power d along the sweeps over d
LINEAR_GROWTH_PREFIX = f"{LINEAR_PREFIX}growth/"
OURS = (ADA_OPKB, ADA_OPKB_PUBLISHED)


_IN_SEGMENTS = PowerLaw(rounds=1 / 2, segments=1 / 2, dimension=1.0)
_IN_VARIATION = PowerLaw(rounds=2 / 3, variation=1 / 3, dimension=2 / 3)
_FORGETTING = Bound.both(PowerLaw(rounds=3 / 4, variation=1 / 4, dimension=7 / 8))
TABLE_1: Mapping[str, Bound] = {
    "ADA-OPKB": Bound(_IN_SEGMENTS, _IN_VARIATION),
    "D-LinUCB": _FORGETTING,
    "SW-LinUCB": _FORGETTING,
    "RestartUCB": _FORGETTING,
    "Restart-Adv": Bound.both(_IN_VARIATION),
    "SW-LinUCB+BOB": _FORGETTING,
    "RestartUCB+BOB": _FORGETTING,
    # of two terms, d^(2/3) T^(2/3) V^(1/3) and d^(1/2) T^(3/4), the larger exponent of each
    "Restart-Adv+BOB": Bound.both(PowerLaw(rounds=3 / 4, variation=1 / 3, dimension=2 / 3)),
    "LinUCB+MASTER": Bound(_IN_SEGMENTS, PowerLaw(rounds=2 / 3, variation=1 / 3, dimension=1.0)),
}


def _size(world: LinearSetting) -> WorldSize:
    settings = world.settings
    segments = 1 + len(settings["switches"]) if "switches" in settings else int(settings["horizon"])
    return WorldSize(settings["horizon"], segments, world.path, settings["dimension"], settings["size"])


def _sweep(
    name: str,
    title: str,
    symbol: str,
    rate: float,
    points: Mapping[float, LinearSetting],
    seeds: tuple[int, ...],
) -> Sweep:
    def experiment(value: float, world: LinearSetting) -> Experiment:
        policies: tuple[PolicySpec, ...] = (*OURS, *theory_rivals(world.path))
        place, shown = f"{LINEAR_GROWTH_PREFIX}{name}/{value:g}", f"{title}: {symbol} = {value:,}"
        return Experiment(place, shown, world.environment, world.settings, policies, seeds)

    experiments = tuple(experiment(value, world) for value, world in points.items())
    made = Sweep(f"{LINEAR_GROWTH_PREFIX}{name}", title, symbol, tuple(points), rate, experiments)
    jumping = any("switches" in world.settings for world in points.values())
    rows = {label: row_of(label, TABLE_1) for label in made.labels}
    laws = {label: row.jumps if jumping else row.drifts for label, row in rows.items()}
    return bounded(made, {value: _size(world) for value, world in points.items()}, laws)


def _jumping(segments: int, horizon: int, dimension: int = SPHERE_DIMENSION, **arms: int) -> LinearSetting:
    switches = [horizon * k // segments for k in range(1, segments)]
    return flipping(dimension, switches, horizon=horizon, **arms)


def _sweeps(
    *, rounds: tuple[int, ...], long: int, dimensions: tuple[int, ...], seeds: tuple[int, ...]
) -> tuple[Sweep, ...]:
    """Two sweeps over T and two over d, where theta jumps and where it turns; one over L_T, one over V_T."""

    def by_dimension(world: Callable[..., LinearSetting]) -> dict[float, LinearSetting]:
        return {d: world(d, size=ARMS_PER_DIMENSION**d) for d in dimensions}

    horizon = min(long, HORIZON)
    d = SPHERE_DIMENSION
    return (
        _sweep("rounds", "Rounds, four segments", "T", 1 / 2, {t: _jumping(4, t) for t in rounds}, seeds),
        _sweep("segments", "Segments", "L_T", 1 / 2, {s: _jumping(s, long) for s in SEGMENTS}, seeds),
        _sweep(
            "dimension",
            "Dimension, four segments",
            "d",
            1.0,
            by_dimension(lambda d, size: _jumping(4, horizon, d, size=size)),
            seeds,
        ),
        _sweep(
            "drifting-rounds",
            "Rounds, one turn of drift",
            "T",
            2 / 3,
            {t: turning(d, 1.0, horizon=t) for t in rounds},
            seeds,
        ),
        _sweep("variation", "Turns of drift", "V_T", 1 / 3, {v: turning(d, v, horizon=long) for v in TURNS}, seeds),
        _sweep(
            "drifting-dimension",
            "Dimension, one turn of drift",
            "d",
            2 / 3,
            by_dimension(lambda d, size: turning(d, 1.0, horizon=horizon, size=size)),
            seeds,
        ),
    )


LINEAR_SWEEPS = _sweeps(rounds=ROUNDS, long=LONG_HORIZON, dimensions=DIMENSIONS, seeds=SEEDS)
LINEAR_GROWTH: dict[str, Experiment] = by_id(e for sweep in LINEAR_SWEEPS for e in sweep.experiments)
# A taste: two seeds, at most 8,000 rounds, 2,000 where the rounds stay, and no sphere of more than 81 arms.
QUICK_LINEAR_SWEEPS = _sweeps(rounds=ROUNDS[:3], long=ROUNDS[0], dimensions=DIMENSIONS[:3], seeds=SEEDS[:2])
_QUICK_POINTS = by_id(e for sweep in QUICK_LINEAR_SWEEPS for e in sweep.experiments)


def quick_linear_point(experiment: Experiment) -> Experiment | None:
    """The point of a sweep as the quick sweeps have it; None if they leave it out."""
    return _QUICK_POINTS.get(experiment.id)
