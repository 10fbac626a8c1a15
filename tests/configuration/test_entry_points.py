"""Policies and worlds that an installed package registers: a real distribution, found by its metadata."""

import json
import os
import subprocess
import sys

import pytest

PACKAGE = '''
import driftbandits as db

class Theirs(db.UCB1):
    """A policy of another package."""

def tide(seed, horizon=200):
    return db.environments.create("switching", seed=seed, horizon=horizon, switches=[100], size=8)
'''
METADATA = "Metadata-Version: 2.1\nName: their-bandits\nVersion: 1.0\n"
POINTS = """[driftbandits.policies]
Theirs = their_bandits:Theirs
UCB1 = their_bandits:Theirs

[driftbandits.environments]
tide = their_bandits:tide
"""


@pytest.fixture
def installed(tmp_path):
    """The folder of a distribution, on the path of a new process: this one knows its packages already."""
    (tmp_path / "their_bandits.py").write_text(PACKAGE)
    metadata = tmp_path / "their_bandits-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(METADATA)
    (metadata / "entry_points.txt").write_text(POINTS)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}


def ran(code, env):
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_they_play_by_name_and_ours_keep_theirs(installed):
    found = ran(
        "import json, driftbandits as db\n"
        "from driftbandits.configuration.references import resolve\n"
        "table = db.compare(['Theirs', 'UCB1'], 'tide', seeds=2, jobs=1, show=False)\n"
        "regrets = table.summary['regret'].round(6).tolist()\n"
        "print(json.dumps([sorted(table.summary['policy']), regrets, resolve('UCB1'), resolve('tide')]))",
        installed,
    )
    assert found[0] == ["Theirs", "UCB1"]
    assert found[1][0] == found[1][1]  # theirs is UCB1 by another name
    assert found[2:] == ["UCB1", "their_bandits:tide"]


def test_they_are_listed_without_being_imported(installed):
    found = ran(
        "import json, sys\n"
        "from driftbandits.cli.listing import _environments, _policies\n"
        "names = [row['name'] for row in _policies() + _environments()]\n"
        "print(json.dumps([names, 'their_bandits' in sys.modules]))",
        installed,
    )
    assert "Theirs" in found[0]
    assert "tide" in found[0]
    assert found[1] is False
