"""A command line to call, a small experiment in the catalogue, and a folder in which it was played once."""

import shutil

import pytest
from typer.testing import CliRunner

from driftbandits.cli.app import app
from driftbandits.experiments.specs import Experiment, PolicySpec
from reproduction.groups import EXPERIMENTS

SMALL = Experiment(
    id="small",
    title="Small",
    environment="switching/1",
    settings={"horizon": 300, "switches": [150], "size": 10},
    policies=(PolicySpec("ADA-OPKB", "AdaOPKB"), PolicySpec("chance", "Uniform")),
    seeds=(0, 1, 2),
)


@pytest.fixture
def cli(monkeypatch):
    """Calls the command line in this process: result.exit_code, result.stdout, result.stderr."""
    monkeypatch.setitem(EXPERIMENTS, "small", SMALL)

    def call(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return call


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A folder with the small experiment played on its first two seeds, and what the command printed."""
    folder = tmp_path_factory.mktemp("finished") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(EXPERIMENTS, "small", SMALL)
        arguments = ["reproduce", "small", "--seeds", "2", "--jobs", "1", "--out", str(folder)]
        return folder, CliRunner().invoke(app, arguments)


@pytest.fixture
def played(finished, tmp_path):
    """A copy of that folder."""
    return shutil.copytree(finished[0], tmp_path / "out")
