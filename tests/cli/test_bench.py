"""What a live round of each policy costs."""

import json

from driftbandits import POLICIES


def test_bench_measures_beside_chance(cli):
    result = cli("bench", "--policy", "Uniform", "--policy", "GPUCB,label=mine", "--rounds", 50, "--json")
    assert result.exit_code == 0, result.stderr
    chance, mine = json.loads(result.stdout)
    assert set(chance) == {"policy", "microseconds", "ratio"}
    assert mine["policy"] == "mine"
    assert mine["microseconds"] > 0
    assert mine["ratio"] > 0
    shown = cli("bench", "--policy", "Uniform", "--rounds", 20)
    assert shown.stdout.splitlines()[0].split() == ["policy", "microseconds", "ratio"]


def test_bench_measures_every_policy(cli):
    rows = json.loads(cli("bench", "--rounds", 10, "--json").stdout)
    assert [row["policy"].partition(" ")[0] for row in rows] == list(POLICIES)
