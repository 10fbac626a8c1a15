"""Every experiment, search and benchmark takes its seeds from the range for its purpose."""

import ast
from pathlib import Path

import pytest

from driftbandits.errors import InputError
from driftbandits.experiments.seeds import DEVELOPMENT, EVALUATION, TUNING
from driftbandits.experiments.specs import Experiment
from reproduction.groups import GROUPS
from reproduction.real_data import is_real
from reproduction.topic import Group
from reproduction.tuning import (
    CONSTANTS_STUDIES,
    comparison_searches,
    constants_search,
    grid_searches,
    linear_searches,
    paper_searches,
)

ROOT = Path(__file__).parents[2]
SEARCHES = [
    *comparison_searches().values(),
    *linear_searches().values(),
    *paper_searches().values(),
    *map(constants_search, CONSTANTS_STUDIES),
]


def test_experiments_are_played_on_evaluation_seeds():
    for group in GROUPS:
        simulated = [experiment for experiment in group.experiments if not is_real(experiment)]
        wanted = TUNING if group.name == "paper/sizes" else EVALUATION  # that group is about what a search finds
        assert all(wanted.holds(experiment.seeds) and experiment.seeds for experiment in simulated)


def test_a_group_with_other_seeds_is_refused():
    for seeds in (DEVELOPMENT.take(2), TUNING.take(2), (*EVALUATION.take(2), 0)):
        mixed = Experiment("mixed", "Mixed", "switching/1", {}, (), seeds)
        with pytest.raises(InputError, match="mixed must be played on evaluation seeds, from 2,000,000"):
            Group("mixed", "Mixed", "", (mixed,))


def test_searches_are_played_on_tuning_seeds():
    for search in SEARCHES:
        last = search.rungs[-1][1] - 1
        assert TUNING.holds(search.cell(0, (seed, 0)).seed for seed in (0, last))
    for grid in grid_searches():
        assert TUNING.holds(grid.cell(0, (seed, 0)).seed for seed in range(grid.rungs[-1][1]))


def seeds_written(path):
    """Numbers that a file gives as seeds: to arguments and in assignments whose names have the word."""
    for node in ast.walk(ast.parse(path.read_text())):
        if (isinstance(node, ast.keyword) and node.arg in ("seed", "seeds")) or (
            isinstance(node, ast.Assign) and any("SEED" in ast.unparse(target) for target in node.targets)
        ):
            value = node.value
        else:
            continue
        taken = isinstance(value, ast.Call) and ast.unparse(value.func).endswith(".take")
        if not taken:
            yield from (n.value for n in ast.walk(value) if isinstance(n, ast.Constant) and type(n.value) is int)


def test_nobody_writes_down_a_seed_for_evaluation():
    for folder in ("reproduction", "benchmarks", "attacks", "examples", "src/driftbandits"):
        for path in (ROOT / folder).rglob("*.py"):
            if path != ROOT / "src/driftbandits/experiments/seeds.py":
                assert not any(EVALUATION.holds([seed]) for seed in seeds_written(path)), path


def test_benchmarks_and_the_study_count_seeds_in_no_range_of_their_own():
    written = [seed for path in (ROOT / "benchmarks").rglob("*.py") for seed in seeds_written(path)]
    assert written
    assert all(DEVELOPMENT.holds([seed]) or TUNING.holds([seed]) for seed in written)
    for path in (ROOT / "reproduction").glob("*.py"):
        text = path.read_text()
        assert "seeds=range(" not in text, path
        assert "SEEDS = tuple(range(" not in text, path
