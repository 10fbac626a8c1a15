"""Numbers on pages come from files of results: measured by a command, written with all that says how, filled in.

A file `results/NAME.json` has the command, the date, the version, the arithmetic of the machine, the seeds, the
`behaviour` of every policy, and the numbers by key. A page marks a number with the file, the key and a format:

    loses <!--result spread regret ,.0f-->123<!--/result--> in all

`python -m reproduction measure NAME` measures again and writes the file; `python -m reproduction fill` writes all
marked numbers into the pages. A test fails where a page does not say what its file does. Whole tables are kept and
filled in alike, as lines of Markdown between `<!--table NAME KEY-->` and `<!--/table-->`.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar, get_args

import numpy as np
import pandas as pd

from driftbandits._util.files import write_whole
from driftbandits._util.intervals import t_interval
from driftbandits._util.machine import fingerprint
from driftbandits.datasets import OFFSETS
from driftbandits.errors import InputError, did_you_mean
from driftbandits.experiments.engines import Engine
from driftbandits.experiments.playing import play
from driftbandits.experiments.results import Results
from driftbandits.experiments.specs import Experiment, PolicySpec, policy_class
from driftbandits.policies.opkb.opnn import PAPER_WIDTH
from driftbandits.version import __version__
from reproduction import contexts, logs
from reproduction.catalogue import ADA_OPKB, ADA_OPKB_PUBLISHED, AUTOBANDIT, OPNN0_PUBLISHED, SW_GPUCB_PUBLISHED
from reproduction.claims import Claim, ClaimVerdict, judge_at_most
from reproduction.growth import GROWTH_SEEDS, STEADY_SWEEPS, SWEEPS, growth_claims
from reproduction.linear import LINEAR, LINEAR_SWEEPS, check_linear_claims
from reproduction.paper import (
    BEST_SIZES,
    BEYOND,
    ENVIRONMENT_1,
    ENVIRONMENT_2,
    FIGURE_SEEDS,
    FIGURES,
    SIZES_OF_DISCOUNTS,
    SIZES_OF_WINDOWS,
    STATIONARY_COSINE,
    check_claims,
    rival_rows,
)
from reproduction.real_suite import DEVELOPMENT, JUDGED, REAL_SUITE, judge_real_suite
from reproduction.suite import SUITE
from reproduction.sweeps import Sweep, allowed_slope, measure_growth

T = TypeVar("T")
RESULTS = Path(__file__).parent / "results"
PAGES = Path(__file__).parents[1] / "docs"
MARK = re.compile(r"(<!--result (\S+) (\S+) (\S+?)-->)(.*?)(<!--/result-->)", re.DOTALL)
TABLE = re.compile(r"(<!--table (\S+) (\S+?)-->\n)(.*?)(<!--/table-->)", re.DOTALL)


@dataclass(frozen=True)
class Measurement:
    """What was measured, and how."""

    command: str
    date: str
    version: str
    fingerprint: str
    seeds: tuple[int, ...]
    behaviour: Mapping[str, int]
    numbers: Mapping[str, float]
    tables: Mapping[str, Sequence[str]] = field(default_factory=dict)  # lines of Markdown


def new_measurement(
    name: str,
    numbers: Mapping[str, float],
    *,
    seeds: Sequence[int],
    policies: Sequence[str],
    tables: Mapping[str, Sequence[str]] | None = None,
) -> Measurement:
    """The measurement called `name`, made now and here; `policies` are names of classes."""
    return Measurement(
        command=f"python -m reproduction measure {name}",
        date=datetime.now(UTC).date().isoformat(),
        version=__version__,
        fingerprint=fingerprint(),
        seeds=tuple(seeds),
        behaviour={policy: policy_class(policy).behaviour for policy in policies},
        numbers=dict(numbers),
        tables=dict(tables or {}),
    )


def write_measurement(name: str, measurement: Measurement, *, folder: Path = RESULTS) -> Path:
    """Write the file of results, completely or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    write_whole(path, (json.dumps(dataclasses.asdict(measurement), indent=1) + "\n").encode())
    return path


def read_measurement(name: str, *, folder: Path = RESULTS) -> Measurement:
    """The file of results called `name`. Raises InputError where there is none, or it is of something else."""
    path = folder / f"{name}.json"
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return Measurement(**{**values, "seeds": tuple(values["seeds"])})
    except FileNotFoundError:
        known = [file.stem for file in sorted(folder.glob("*.json"))]
        raise InputError(f"there is no file of results {name!r}; {did_you_mean(name, known)}") from None
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path} is no file of results: {error}") from None


def filled(text: str, *, folder: Path = RESULTS) -> str:
    """The text of a page with every marked number and table as its file has it.

    >>> filled("no number is marked")
    'no number is marked'
    """

    def number(found: re.Match[str]) -> str:
        opening, name, key, form, _, closing = found.groups()
        return f"{opening}{_entry(name, read_measurement(name, folder=folder).numbers, key):{form}}{closing}"

    def table(found: re.Match[str]) -> str:
        opening, name, key, _, closing = found.groups()
        lines = _entry(name, read_measurement(name, folder=folder).tables, key)
        return opening + "".join(f"{line}\n" for line in lines) + closing

    return TABLE.sub(table, MARK.sub(number, text))


def _entry(name: str, entries: Mapping[str, T], key: str) -> T:
    if key not in entries:
        raise InputError(f"the file of results {name!r} has no {key!r}; {did_you_mean(key, list(entries))}")
    return entries[key]


def fill_pages(pages: Path = PAGES, *, folder: Path = RESULTS) -> list[Path]:
    """Write marked numbers into all pages below a folder; gives the pages that changed."""
    changed = []
    for page in sorted(pages.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if (now := filled(text, folder=folder)) != text:
            write_whole(page, now.encode())
            changed.append(page)
    return changed


def measure_spread() -> Measurement:
    """How much regret varies from seed to seed: AutoBandit in a world of the suite, on evaluation seeds."""
    world = dataclasses.replace(SUITE["suite/flip-3/d2"], policies=(AUTOBANDIT,))
    regrets = play([world], engine=Engine(jobs=1)).cells["regret"].to_numpy(dtype=float)
    numbers = {
        "regret": float(regrets.mean()),
        "standard_error": float(regrets.std(ddof=1) / len(regrets) ** 0.5),
        "least": float(regrets.min()),
        "most": float(regrets.max()),
        "seeds": len(regrets),
    }
    return new_measurement("spread", numbers, seeds=world.seeds, policies=[AUTOBANDIT.name])


# On the pages: minutes, where all seeds and the full width of networks take an hour and more.
MEASURED_WIDTH, NETWORK_SEEDS, BEYOND_SEEDS, KERNEL_SEEDS, DISCOUNT_SEEDS = 512, {"AdaOPNN": 8, "OPNN": 5}, 8, 16, 6
PLAYED = Path("results/measured")  # where finished runs are kept: what is measured again goes on there


def measure_paper() -> Measurement:
    """The rows and claims of the paper's figures: kernel rows on 16 seeds, networks 512 wide on eight or five."""
    discounts = BEST_SIZES[SIZES_OF_DISCOUNTS]
    experiments = [
        *(_measured(figure) for figure in FIGURES.values()),
        BEST_SIZES[SIZES_OF_WINDOWS],
        dataclasses.replace(discounts, seeds=discounts.seeds[:DISCOUNT_SEEDS]),
    ]
    results = play(experiments, store=PLAYED, show=True)
    numbers = {
        f"{row['experiment']}.{key_of(row['policy'])}.{name}": float(row[name])
        for row in results.summary.to_dict("records")
        for name in ("regret", "standard_error", "seeds", "changes_found", "changes_missed", "median_delay")
        if not math.isnan(float(row[name]))
    }
    for experiment, ours in ((ENVIRONMENT_2, ADA_OPKB_PUBLISHED), (ENVIRONMENT_1, ADA_OPKB)):
        window = rival_rows(SW_GPUCB_PUBLISHED)["published"]
        regrets = [numbers[f"{experiment}.{key_of(row.label)}.regret"] for row in (ours, window)]
        numbers[f"{experiment}.{key_of(ours.label)}.over-window"] = regrets[0] / regrets[1]
    claims = check_claims(results, sweeps=())
    policies = {policy.name for experiment in experiments for policy in experiment.policies}
    return new_measurement(
        "paper",
        {**numbers, **numbers_of(claims), "seconds": float(results.cells["seconds"].sum())},
        seeds=FIGURE_SEEDS[:KERNEL_SEEDS],
        policies=sorted(policies),
    )


def _measured(experiment: Experiment) -> Experiment:
    """The figure as it is measured for the pages."""
    rows = tuple(map(_measured_row, experiment.policies))
    return dataclasses.replace(experiment, policies=rows, seeds=experiment.seeds[:KERNEL_SEEDS])


def _measured_row(row: PolicySpec) -> PolicySpec:
    if row.settings.get("width") == PAPER_WIDTH:
        settings = {**row.settings, "width": MEASURED_WIDTH}
        return dataclasses.replace(row, settings=settings, seeds=NETWORK_SEEDS[row.name])
    return dataclasses.replace(row, seeds=BEYOND_SEEDS) if row in BEYOND else row


SLOPE_HEADS = {
    "rounds": "T, four segments",
    "drifting-rounds": "T, drift",
    "segments": "segments L",
    "variation": "variation V",
    "dimension": "d, four segments",
    "drifting-dimension": "d, drift",
    "steady-rounds": "T",
    "arms": "log N",
}
WORLD_HEADS = {
    "one-switch": "one switch",
    "two-switches": "two switches",
    "drift": "drift",
    "box-one-switch": "box, one switch",
    "box-drift": "box, drift",
}


def measure_growth_of_regret() -> Measurement:
    """T1 to T3: how fast regret grows, and how fast the bounds allow."""
    results = play([e for sweep in SWEEPS for e in sweep.experiments], store=PLAYED, show=True)
    steady = [sweep for sweep in SWEEPS if sweep.id.rpartition("/")[2] in STEADY_SWEEPS]
    changing = [sweep for sweep in SWEEPS if sweep not in steady]
    tables = {
        "changing": slopes_table(results.cells, changing, head="policy"),
        "steady": slopes_table(results.cells, steady, head="policy, nothing changes"),
    }
    return new_measurement(
        "growth",
        numbers_of(growth_claims(results, SWEEPS)),
        seeds=GROWTH_SEEDS,
        policies=_names(SWEEPS),
        tables=tables,
    )


def measure_linear() -> Measurement:
    """Regret of linear bandits, LB-1 to LB-4, how fast regret grows, and how fast the bounds allow."""
    worlds = list(LINEAR.values())
    results = play([*worlds, *(e for sweep in LINEAR_SWEEPS for e in sweep.experiments)], store=PLAYED, show=True)
    tables = {
        "regret": regret_table(results, {WORLD_HEADS[world.id.split("/")[1]]: world for world in worlds}),
        "slopes": slopes_table(results.cells, LINEAR_SWEEPS, head="policy"),
    }
    allowed = {
        f"{sweep.id}.{key_of(label)}.allowed": allowed_slope(sweep, label, sweep.values)
        for sweep in LINEAR_SWEEPS
        for label in sweep.labels
    }
    claims = check_linear_claims(results, LINEAR_SWEEPS)
    ours = numbers_of(claims)  # of rivals the verdicts alone: the tables have their slopes and regrets
    kept = {key: value for key, value in ours.items() if key.startswith("LB-1") or key.endswith(".verdict")}
    names = {*_names(LINEAR_SWEEPS), *(policy.name for world in worlds for policy in world.policies)}
    seeds = sorted({seed for world in worlds for seed in world.seeds})
    return new_measurement("linear", {**kept, **allowed}, seeds=seeds, policies=sorted(names), tables=tables)


def _names(sweeps: Sequence[Sweep]) -> list[str]:
    return sorted({policy.name for sweep in sweeps for e in sweep.experiments for policy in e.policies})


def slopes_table(cells: pd.DataFrame, sweeps: Sequence[Sweep], *, head: str) -> list[str]:
    """A row per policy, a column per sweep: slope [95 % interval] (allowed slope) and what follows."""
    heads = [SLOPE_HEADS[sweep.id.rpartition("/")[2]] for sweep in sweeps]
    labels = dict.fromkeys(label for sweep in sweeps for label in sweep.labels)
    return markdown_table(
        [head, *heads], [[label, *(_slope_entry(cells, sweep, label) for sweep in sweeps)] for label in labels]
    )


_MARKS = {"holds": "", "does not hold": " **over**", "undecided": " ?"}


def _slope_entry(cells: pd.DataFrame, sweep: Sweep, label: str) -> str:
    growth = measure_growth(cells, sweep, label) if label in sweep.labels else None
    if growth is None:
        return ""
    slope, allowed = growth.slope, growth.allowed
    mark = _MARKS[judge_at_most(slope, allowed)]
    return f"{slope.estimate:.2f} [{slope.low:.2f}, {slope.high:.2f}] ({allowed:.2f}){mark}"


def regret_table(results: Results, by_head: Mapping[str, Experiment]) -> list[str]:
    """Mean regret ± standard error, a row per policy, a column per world; the least in the first world comes first."""
    worlds = list(by_head.values())
    rows = results.summary.to_dict("records")
    found = {(row["experiment"], row["policy"]): row for row in rows}
    labels = list(dict.fromkeys(policy.label for world in worlds for policy in world.policies))
    labels.sort(key=lambda label: float(found[worlds[0].id, label]["regret"]))
    entries = [[label, *(_regret_entry(found.get((world.id, label))) for world in worlds)] for label in labels]
    return markdown_table(["policy", *by_head], entries)


def _regret_entry(row: Mapping[Hashable, Any] | None) -> str:
    return "" if row is None else f"{row['regret']:,.0f} ± {row['standard_error']:,.0f}"


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of Markdown: the first column to the left, the others to the right."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def measure_phases() -> Measurement:
    """What a phase drawn per seed does to OPNN0 as the authors ran it, against the phase 0 of the text."""
    seeds = FIGURE_SEEDS
    figure = dataclasses.replace(FIGURES[STATIONARY_COSINE], policies=(OPNN0_PUBLISHED,), seeds=seeds)
    drawn = [
        dataclasses.replace(figure, id=f"drawn/{seed}", settings=_drawn_phase(figure.settings, seed), seeds=(seed,))
        for seed in seeds
    ]
    cells = play([figure, *drawn], store=PLAYED, show=True).cells
    still = cells["experiment"] == figure.id
    series = (cells[rows].set_index("seed")["regret"] for rows in (still, ~still))
    before, after = (one.reindex(seeds).to_numpy(dtype=float) for one in series)
    difference = t_interval(after - before)
    means = {"still": before, "drawn": after}
    numbers = {
        **{f"{name}.mean": float(regrets.mean()) for name, regrets in means.items()},
        **{f"{name}.sem": float(regrets.std(ddof=1) / len(seeds) ** 0.5) for name, regrets in means.items()},
        **{name: float(getattr(difference, name)) for name in ("estimate", "low", "high", "seeds")},
    }
    return new_measurement("phases", numbers, seeds=seeds, policies=[OPNN0_PUBLISHED.name])


def measure_series() -> Measurement:
    """All policies on the real series, each over the best of AutoBandit's rivals there."""
    results = play(list(REAL_SUITE.values()), store=PLAYED, engine=Engine(jobs=1), show=True)
    judgement = judge_real_suite(results)
    if judgement is None:
        raise InputError("no series was played: nothing to measure")
    numbers = {
        f"{series}.{key_of(str(policy))}.{name}": float(value)
        for name, table in (("regret", judgement.regrets), ("over-best", judgement.over_best))
        for series, row in table.iterrows()
        for policy, value in row.items()
    }
    for part, names in (("development", DEVELOPMENT), ("judged", JUDGED), ("all", (*DEVELOPMENT, *JUDGED))):
        numbers |= {f"{part}.{key_of(str(policy))}": float(v) for policy, v in judgement.means(names).items()}
    policies = {policy.name for experiment in REAL_SUITE.values() for policy in experiment.policies}
    return new_measurement("series", numbers, seeds=tuple(range(OFFSETS)), policies=sorted(policies))


def measure_contexts() -> Measurement:
    """AutoBandit with contexts beside its rivals, alarms, and useless columns."""
    found = contexts.compared()
    numbers = {key_of(key): value for key, value in found.numbers.items()}
    return new_measurement(
        "contexts",
        {**numbers, **contexts.alarm_numbers(), **contexts.useless_numbers()},
        seeds=contexts.MIXED_ON,
        policies=[contexts.OURS, *contexts.RIVALS],
        tables={"regret": contexts.table(found, markdown_table)},
    )


def _drawn_phase(settings: Mapping[str, Any], seed: int) -> dict[str, Any]:
    return {**settings, "phase": [[0, float(np.random.default_rng(seed).uniform(0.0, 2.0 * np.pi))]]}


def key_of(words: str) -> str:
    """A label as part of a key.

    >>> key_of("SW-GPUCB (published, tuned)")
    'sw-gpucb-published-tuned'
    """
    return "-".join(re.findall(r"[a-z0-9.+]+", words.lower()))


def numbers_of(claims: Sequence[Claim]) -> dict[str, float]:
    """Estimate and interval of every check by claim and brief, and every verdict by its place in ClaimVerdict."""
    checks = {
        f"{claim.id}.{key_of(check.brief)}.{name}": float(getattr(check, name))
        for claim in claims
        for check in claim.checks
        if check.verdict != "not run"
        for name in ("estimate", "low", "high")
    }
    return {**checks, **{f"{claim.id}.verdict": get_args(ClaimVerdict).index(claim.verdict) for claim in claims}}


def _of_logs(name: str, measure: Callable[[], dict[str, float]], seeds: int, policies: Sequence[str]) -> Measurement:
    return new_measurement(name, measure(), seeds=logs.seeds_of_logs(seeds), policies=policies)


def _intervals(name: str, changes: int) -> Measurement:
    return _of_logs(name, lambda: logs.interval_numbers(changes), logs.LOGS_DATED, ())


def _of_benchmark(name: str, policies: Sequence[str] = ()) -> Measurement:
    """What a benchmark has in tables; it is only imported here, as some need packages that nothing else does."""
    seeds, tables = importlib.import_module(f"benchmarks.{name}").measured()
    return new_measurement(name, {}, seeds=seeds, policies=policies, tables=tables)


MEASURES: Mapping[str, Callable[[], Measurement]] = {
    "log-one-change": lambda: _intervals("log-one-change", 1),
    "log-three-changes": lambda: _intervals("log-three-changes", 3),
    "log-verdicts": lambda: _of_logs("log-verdicts", logs.verdict_numbers, logs.LOGS, ("Exp3S",)),
    "log-false-alarms": lambda: _of_logs("log-false-alarms", logs.false_alarm_numbers, 1, ()),
    "log-recommendations": lambda: _of_logs(
        "log-recommendations", logs.recommendation_numbers, logs.LOGS_RECOMMENDED, ("Exp3S", *logs.PLAYERS)
    ),
    "log-times": lambda: _of_logs("log-times", logs.time_numbers, 1, logs.PLAYERS),
    "log-contexts": lambda: new_measurement(
        "log-contexts",
        logs.context_numbers(),
        seeds=logs.seeds_of_logs(len(logs.CONTEXT_WORLDS) * logs.LOGS_WITH_CONTEXTS, first=logs.FIRST_WITH_CONTEXTS),
        policies=("AutoBandit", "DisjointLinThompson"),
    ),
    "detectors": lambda: _of_benchmark("detectors"),
    "estimators": lambda: _of_benchmark("estimators", ("Exp3S", "Uniform")),
    "contexts": measure_contexts,
    "spread": measure_spread,
    "paper": measure_paper,
    "phases": measure_phases,
    "growth": measure_growth_of_regret,
    "linear": measure_linear,
    "series": measure_series,
}


def main(arguments: Sequence[str]) -> int:
    """`measure [NAME ...]`, by default all, or `fill`."""
    command, *names = arguments
    for name in names or MEASURES if command == "measure" else ():
        if name not in MEASURES:
            raise InputError(f"nothing called {name!r} is measured; {did_you_mean(name, list(MEASURES))}")
        print(write_measurement(name, MEASURES[name]()))
    for page in fill_pages():
        print(page)
    return 0
