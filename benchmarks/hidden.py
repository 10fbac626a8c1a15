"""Does anything stay hidden from AutoBandit? The suite on seeds 30 to 49, beside the window and GP-UCB tuned there.

Seeds 0 to 9 are for development, and 10 to 29 have been looked at: they judged the looks before these. `python -m
benchmarks hidden` plays the worlds that looks matter most to, half an hour on one core; `python -m benchmarks.hidden`
all 48 in two hours, with `--worlds` and `--seeds 30 34` some of them. Every run is a line of
results/benchmarks/hidden.jsonl, and a run that stands there is not played again: delete the file where the policy has
changed. Regret is judged in absolute terms: in a world with changes AutoBandit may have half more than the window tuned
in it, or `SLACK` more if that is larger; where nothing changes, `SLACK` more than GP-UCB tuned there.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from driftbandits.detection import detections
from driftbandits.environments import Environment
from driftbandits.experiments.building import build_policy, build_world
from driftbandits.experiments.specs import Experiment, cells_of
from driftbandits.simulation import simulate
from driftbandits.types import Floats, Ints
from reproduction.autobandit import YARDSTICK
from reproduction.claims import geometric_mean
from reproduction.figures import ratio_figure, ratio_rows
from reproduction.suite import STATIONARY_PREFIX, SUITE, suite_name

AUTO, WINDOW, GPUCB = "AutoBandit", "SW-GPUCB (tuned here)", "GPUCB (tuned here)"
FIRST, LAST = 30, 49
SLACK = {"d2": 100.0, "d3": 150.0, "d10": 250.0}
RATIO = 1.5
ADOPTED_ROUNDS = 200  # of which the new best arm must have half
KEPT = Path("results/benchmarks/hidden.jsonl")
MATTER_MOST = ("hidden", "level", "periodic", STATIONARY_PREFIX)
WORLDS = tuple(suite_name(world) for world in SUITE.values())


@dataclasses.dataclass(frozen=True)
class Run:
    """What is kept of one: final regret, hidden changes whose new best arm was adopted, alarms that were false."""

    world: str
    policy: str
    seed: int
    regret: float
    adopted: int
    hidden: int
    false_alarms: int


# --- playing --------------------------------------------------------------------------------------------------------


def rivals(world: str) -> tuple[str, ...]:
    """Who plays in a world beside AutoBandit; it is judged by the first."""
    return (GPUCB, WINDOW) if world.startswith(STATIONARY_PREFIX) else (WINDOW,)


def play(world: str, label: str, seed: int) -> Run:
    """One run of the yardstick."""
    experiment = YARDSTICK[f"yardstick/{world}"]
    chosen = tuple(spec for spec in experiment.policies if spec.label == label)
    return _play(dataclasses.replace(experiment, seeds=(seed,), policies=chosen), world, label)


def _play(experiment: Experiment, name: str, label: str) -> Run:
    (cell,) = cells_of(experiment)
    alarms: list[int] = []
    with threadpool_limits(limits=1):
        world = build_world(cell.environment, cell.settings, cell.seed)
        policy = build_policy(cell.policy, world, cell.seed)

        def note(_: int) -> None:
            if new := policy.changes_found - len(alarms):
                alarms.extend(change.round for change in policy.changes[-new:])

        trace = simulate(policy, world, seed=cell.seed, progress=note)
    hidden = experiment.settings.get("kind") == "hidden"
    found = adopted(world, trace.arm.astype(np.int64)) if hidden else []
    false = detections([int(t) for t in world.change_rounds], alarms).false_alarms
    return Run(name, label, cell.seed, float(trace.cumulative_regret[-1]), sum(found), len(found), false)


def adopted(world: Environment, arms: Ints) -> list[bool]:
    """For every change, whether its best arm had half of some `ADOPTED_ROUNDS` rounds before the next."""
    rounds = [int(t) for t in world.change_rounds]
    found = []
    for first, last in zip(rounds, [*rounds[1:], world.horizon], strict=True):
        mine = (arms[first:last] == int(world.means(first)[0].argmax())).astype(np.float64)
        plays = np.convolve(mine, np.ones(ADOPTED_ROUNDS), "valid")
        found.append(bool(plays.max(initial=0.0) >= ADOPTED_ROUNDS / 2))
    return found


def collect(worlds: Sequence[str], seeds: Iterable[int], *, jobs: int) -> list[Run]:
    """All these runs, those kept already and those played now."""
    kept = {(run.world, run.policy, run.seed): run for run in _kept()}
    wanted = [(world, label, seed) for seed in seeds for world in worlds for label in (AUTO, *rivals(world))]
    tasks = (joblib.delayed(play)(*task) for task in wanted if task not in kept)
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    with KEPT.open("a") as file:
        for run in joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks):
            file.write(json.dumps(dataclasses.asdict(run)) + "\n")
            file.flush()
            kept[run.world, run.policy, run.seed] = run
    return [kept[task] for task in wanted]


def _kept() -> list[Run]:
    return [Run(**json.loads(line)) for line in KEPT.read_text().splitlines()] if KEPT.exists() else []


# --- judging --------------------------------------------------------------------------------------------------------


def allowed(world: str, rival: float) -> float:
    """The most regret AutoBandit may have where its rival has so much.

    >>> allowed("hidden-3/d2", 347.0), allowed("level-3/d2", 34.0), allowed("stationary/d3", 80.0)
    (520.5, 134.0, 230.0)
    """
    slack = rival + SLACK[world.rpartition("/")[2]]
    return slack if world.startswith(STATIONARY_PREFIX) else max(RATIO * rival, slack)


@dataclasses.dataclass(frozen=True)
class Row:
    """AutoBandit in one world: its runs, and the mean regrets of the rival it is judged by and of the window."""

    world: str
    own: list[Run]
    rival: float
    window: float

    @property
    def regrets(self) -> Floats:
        """Its final regrets."""
        return np.array([run.regret for run in self.own])

    @property
    def beyond(self) -> float:
        """Regret beyond what is allowed."""
        return float(self.regrets.mean()) - allowed(self.world, self.rival)

    def __str__(self) -> str:
        """A line of the table."""
        regrets, own, most = self.regrets, self.own, allowed(self.world, self.rival)
        error = regrets.std(ddof=1) / np.sqrt(len(regrets)) if len(regrets) > 1 else np.nan
        adoptions = f"{sum(run.adopted for run in own)} of {sum(run.hidden for run in own)}" if own[0].hidden else ""
        return (
            f"| {self.world} | {len(regrets)} | {regrets.mean():,.0f} ± {error:,.0f} | {self.rival:,.0f} | {most:,.0f} "
            f"| {regrets.mean() / self.window:.2f} | {adoptions} | {np.mean([run.false_alarms for run in own]):.2f} "
            f"| {'no' if self.beyond > 0 else 'yes'} |"
        )


def rows_of(runs: Sequence[Run]) -> list[Row]:
    """Every world on the seeds that all its policies have played, the largest regret beyond what is allowed first."""
    rows = []
    for world in dict.fromkeys(run.world for run in runs):
        mine = {(run.policy, run.seed): run for run in runs if run.world == world}
        played = [{seed for policy, seed in mine if policy == name} for name in (AUTO, *rivals(world))]
        seeds = sorted(set.intersection(*played))
        if seeds:
            mean = {name: float(np.mean([mine[name, seed].regret for seed in seeds])) for name in rivals(world)}
            rows.append(Row(world, [mine[AUTO, seed] for seed in seeds], mean[rivals(world)[0]], mean[WINDOW]))
    return sorted(rows, key=lambda row: -row.beyond)


def show(rows: Sequence[Row]) -> None:
    """The table, and the ratio over all worlds."""
    print("| world | seeds | AutoBandit ± s.e. | rival | at most | over window | adopted | false alarms per run | |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---|")
    for row in rows:
        print(row)
    print(f"\ngeometric mean over the window, {len(rows)} worlds: {geometric_mean(_ratios(rows)['over_window']):.2f}")


def _ratios(rows: Sequence[Row]) -> pd.DataFrame:
    ratios = [float(row.regrets.mean()) / row.window for row in rows]
    return pd.DataFrame({"world": [row.world for row in rows], "over_window": ratios})


def draw(rows: Sequence[Row], file: Path) -> None:
    """The regrets over the window's in a figure."""
    found = ratio_rows(_ratios(rows), "over_window")
    ratio_figure(found, limit=RATIO, subject="AutoBandit", rival="tuned window").savefig(file)


def run(*, quick: bool = False) -> None:
    """The worlds where looks pay and where they only cost; `quick`: one seed of a hidden one."""
    print("\n## Nothing stays hidden\n")
    worlds = ("hidden-3/d2",) if quick else tuple(world for world in WORLDS if world.startswith(MATTER_MOST))
    show(rows_of(collect(worlds, range(FIRST, FIRST + 1 if quick else LAST + 1), jobs=1 if quick else -1)))


def main() -> None:
    """Some worlds and seeds."""
    parser = argparse.ArgumentParser(prog="benchmarks.hidden", description=__doc__)
    parser.add_argument("--worlds", nargs="*", default=list(WORLDS), choices=WORLDS, metavar="WORLD", help="which")
    parser.add_argument("--seeds", nargs=2, type=int, default=[FIRST, LAST], help="the first and the last of them")
    parser.add_argument("--jobs", type=int, default=-1, help="processes")
    parser.add_argument("--kept", action="store_true", help="play nothing, show what is kept of these worlds and seeds")
    parser.add_argument("--figure", type=Path, help="where to draw the regrets over the window's")
    options = parser.parse_args()
    seeds = range(options.seeds[0], options.seeds[1] + 1)
    kept = [run for run in _kept() if run.seed in seeds and run.world in options.worlds]
    rows = rows_of(kept if options.kept else collect(options.worlds, seeds, jobs=options.jobs))
    show(rows)
    if options.figure:
        draw(rows, options.figure)


if __name__ == "__main__":
    main()
