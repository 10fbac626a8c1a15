"""Estimators of logs: bias, coverage and width on worlds that move, errors beside others' on the same logs, and the
variance of `dr` over that of `ips`.

Worlds that stand still, switch and drift, logged by a policy that learns; every log has a world of its own. Targets are
a random law and a random arm, whose values are known. Beside ours stand those of Open Bandit Pipeline (a linear
regression on the arm, fitted on the other half of the rows) and of coba (Vowpal Wabbit). `--quick` has a tenth of the
logs, and four worlds of the suite; `python -m reproduction measure estimators` writes the tables of the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np

import driftbandits as db
from driftbandits._util.intervals import share_interval
from driftbandits.environments import Environment
from driftbandits.experiments.seeds import EVALUATION
from driftbandits.logs import Log, estimators
from driftbandits.logs.estimators import Estimator
from driftbandits.logs.targets import shares_of
from driftbandits.types import Floats
from reproduction.measured import markdown_table
from reproduction.suite import SUITE_WORLDS, UNBOUNDED_WORLDS

FIRST_SEED = EVALUATION.first + 30_000  # of logs; local means of 10 rows were chosen on seeds from 2,000
LOGS, BESIDE, ROUNDS, ARMS = 400, 100, 1_000, 10
SUITE_LOGS, SUITE_LAWS = 6, 10
NAMES: tuple[Estimator, ...] = ("ips", "snips", "clipped", "dr", "direct")
TARGETS = ("law", "arm")
WORLDS: dict[str, tuple[str, dict[str, Any]]] = {
    "still": ("switching", {"kind": "redraw", "switches": ()}),
    "switches": ("switching", {"kind": "redraw", "switches": (300, 650)}),
    "drifts": ("cosine", {"phase": [[0, 0.0], [ROUNDS, math.pi]]}),
}


def logged(world: Environment, kind: type[db.Policy], seed: int) -> Log:
    """The log of a policy, which knows the horizon if it needs to."""
    settings: dict[str, Any] = {"horizon": world.horizon} if kind is db.Exp3S else {}
    policy = kind(world.arms, seed=seed, reward_range=world.reward_range, **settings)
    return Log.read(db.simulate(policy, world, seed=seed), arms=world.arms, reward_range=world.reward_range)


def coverage(logs: int) -> list[str]:
    """Mean errors, and intervals: how many cover, and how wide they are."""
    heads = ["world", "target", "estimator", "could tell", "mean error (s.e.)", "covers, 95 %", "width", "anytime"]
    lines = []
    for name in WORLDS:
        found = {(target, one): np.empty((logs, 6)) for target in TARGETS for one in NAMES}
        for number in range(logs):
            _value(name, FIRST_SEED + number, {key: rows[number] for key, rows in found.items()})
        lines += [[name, target, one, *_covered(rows)] for (target, one), rows in found.items()]
    return markdown_table([*heads, "width"], lines)


def _value(name: str, seed: int, found: dict[tuple[str, Estimator], Floats]) -> None:
    """Put into each row of `found` the truth, the value and the ends of both intervals."""
    log, means, laws = world_and_laws(name, seed)
    fitted = estimators.predict(estimators.bin_rewards(log))  # once for all that use it, which is most of the time
    with mock.patch.object(estimators, "predict", return_value=fitted):
        values = {key: db.logs.evaluate(log, laws[key[0]], estimator=key[1]).whole for key in found}
    for (target, one), row in found.items():
        whole = values[target, one]
        row[:] = (means @ laws[target], whole.value, whole.low, whole.high, whole.anytime_low, whole.anytime_high)


def world_and_laws(name: str, seed: int) -> tuple[Log, Floats, dict[str, Floats]]:
    """A log, the mean rewards of the arms in its world, and a target of each kind."""
    kind, settings = WORLDS[name]
    world = db.environments.create(kind, seed=seed, horizon=ROUNDS, size=ARMS, dimension=2, **settings)
    rng = np.random.default_rng([seed, 1])
    laws = {"law": rng.dirichlet(np.ones(ARMS)), "arm": np.eye(ARMS)[rng.integers(ARMS)]}
    return logged(world, db.Exp3S, seed), world.means(0, ROUNDS).mean(axis=0), laws


def _covered(rows: Floats) -> list[str]:
    """Entries of the table; logs that cannot tell give no number and do not count."""
    told = rows[~np.isnan(rows[:, 1])]
    if len(told) < 2:
        return [str(len(told)), *[""] * 5]
    truth, value, low, high, anytime_low, anytime_high = told.T
    errors = value - truth
    bias = f"{errors.mean():+.4f} ({errors.std(ddof=1) / math.sqrt(len(errors)):.4f})"
    share = share_interval(int(((low <= truth) & (truth <= high)).sum()), len(told))
    anytime = ((anytime_low <= truth) & (truth <= anytime_high)).mean()
    covers = f"{share.estimate:.1%} [{share.low:.1%}, {share.high:.1%}]"
    widths = (float((high - low).mean()), float((anytime_high - anytime_low).mean()))
    return [str(len(told)), bias, covers, f"{widths[0]:.3f}", f"{anytime:.1%}", f"{widths[1]:.3f}"]


def beside(logs: int) -> list[str]:
    """Root mean squared errors of ours, Open Bandit Pipeline's and coba's on the same logs."""
    lines = []
    for name in WORLDS:
        errors: dict[str, dict[str, list[float]]] = {target: {} for target in TARGETS}
        for seed in range(FIRST_SEED, FIRST_SEED + logs):
            log, means, laws = world_and_laws(name, seed)
            tables = others_of(log)
            for target, law in laws.items():
                if db.logs.evaluate(log, law, estimator="ips").verdict:
                    continue
                ours = {
                    one: db.logs.evaluate(log, law, estimator=one).value for one in ("ips", "snips", "dr", "direct")
                }
                theirs = {own: float((table @ law).mean()) for own, table in tables.items()}
                for own, value in {**ours, **theirs}.items():
                    errors[target].setdefault(own, []).append(value - float(means @ law))
        for target, found in errors.items():
            roots = {own: math.sqrt(np.mean(np.square(parts))) for own, parts in found.items()}
            told = len(next(iter(found.values())))
            lines.append([name, target, str(told), *(f"{root:.4f}" for root in roots.values())])
    return markdown_table(["world", "target", "logs", *roots], lines)


def others_of(log: Log) -> dict[str, Floats]:
    """What others make of every row for every arm, (rows, arms): the mean over rows, weighed by a law, is its value."""
    from coba.environments.filters import OpeRewards
    from obp.ope import RegressionModel
    from sklearn.linear_model import LinearRegression

    context, every, size = np.ones((len(log), 1)), np.arange(len(log)), len(log.names)
    model = RegressionModel(base_model=LinearRegression(), n_actions=size)
    arms = np.full((len(log), size, 1), 1.0 / size)
    regression = model.fit_predict(context, log.arm, log.reward, log.probability, None, arms, n_folds=2, random_state=0)
    dm = regression[:, :, 0]
    dr = dm.copy()
    dr[every, log.arm] += (log.reward - dm[every, log.arm]) / log.probability
    names = [f"arm {arm}" for arm in range(size)]  # numbers would be taken for amounts
    rows = [
        {"action": names[a], "actions": names, "reward": r, "probability": p, "context": None}
        for a, r, p in zip(log.arm.tolist(), log.reward.tolist(), log.probability.tolist(), strict=True)
    ]
    coba = {
        kind: np.array([[row["rewards"](name) for name in names] for row in OpeRewards(kind).filter(rows)])
        for kind in ("DR", "DM")
    }
    return {"obp DR": dr, "obp DM": dm, "coba DR": coba["DR"], "coba DM": coba["DM"]}


def suite_worlds() -> Iterator[tuple[str, Environment]]:
    """Those whose noise is at most 0.1."""
    for name, (_, kind, settings) in SUITE_WORLDS.items():
        if name not in UNBOUNDED_WORLDS:
            yield name, db.environments.create(kind, seed=FIRST_SEED, horizon=10_000, dimension=3, **settings)


def variance(worlds: int | None) -> list[str]:
    """Squared error of `dr` over that of `ips`."""
    rows = {
        name: [_ratio(world, kind) for kind in (db.Uniform, db.Exp3S)] for name, world in [*suite_worlds()][:worlds]
    }
    rows["geometric mean"] = np.exp(np.log(list(rows.values())).mean(axis=0)).tolist()
    lines = [[name, *(f"{ratio:.3f}" for ratio in ratios)] for name, ratios in rows.items()]
    return markdown_table(["world", "logged by Uniform", "logged by Exp3S"], lines)


def _ratio(world: Environment, kind: type[db.Policy]) -> float:
    """Both are unbiased, so squared errors are variances; laws and logs are averaged over."""
    rng = np.random.default_rng(FIRST_SEED)
    means = world.means(0, world.horizon)
    errors = np.zeros(2)
    for number in range(SUITE_LOGS):
        log = logged(world, kind, FIRST_SEED + number)
        predictions = estimators.predict(estimators.bin_rewards(log)).mean
        for law in rng.dirichlet(np.full(len(world.arms), 0.3), SUITE_LAWS):
            truth, shares = float((means @ law).mean()), shares_of(log, law)[0]
            terms = (estimators.terms_of(log, shares, "ips", None), estimators.terms_of(log, shares, "dr", predictions))
            errors += [(float(own.values.mean()) - truth) ** 2 for own in terms]
    return float(errors[1] / errors[0])


def measured(share: int = 1, worlds: int | None = None) -> tuple[Sequence[int], dict[str, list[str]]]:
    """Seeds and tables, of one log in `share`."""
    tables = {"coverage": coverage(LOGS // share), "beside": beside(BESIDE // share), "variance": variance(worlds)}
    return range(FIRST_SEED, FIRST_SEED + LOGS // share), tables


def run(*, quick: bool = False) -> None:
    for name, lines in measured(10, 4)[1].items() if quick else measured()[1].items():
        print(f"\n### {name}\n", *lines, sep="\n")
