import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from driftbandits.errors import InputError, did_you_mean
from driftbandits.experiments import run_files as config
from driftbandits.experiments.building import check_experiment
from driftbandits.experiments.run_files import plain_experiment, plain_to_experiment, read_experiment, run_schema
from driftbandits.experiments.seeds import DEFAULT_SEEDS
from driftbandits.experiments.specs import cells_of
from reproduction.groups import EXPERIMENTS

ROOT = Path(__file__).parents[2]
VALIDATOR = jsonschema.Draft202012Validator(run_schema())
IN_DOCS = [
    (page.name, block)
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    for block in re.findall(r"^```yaml\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    if block.lstrip("# \n").startswith(("environment:", "title:", "id:", "policies:"))
]
EXAMPLES = [
    ("examples/experiment.yaml", (ROOT / "examples" / "experiment.yaml").read_text()),
    (
        "config.py",
        str(config.__doc__).partition("\n\n")[2].partition("\n\n")[0].replace("  - tuned.json  ", "  # tuned.json"),
    ),
    *IN_DOCS,
]
PLAIN = {"environment": "switching/1", "policies": ["OPKB"]}


def world(**settings):
    return {**PLAIN, "environment": {"name": "switching/1", "settings": settings}}


def policy(name="OPKB", **keys):
    return {**PLAIN, "policies": [{"name": name, **keys}]}


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(run_schema())


@pytest.mark.parametrize("text", [text for _, text in EXAMPLES], ids=[name for name, _ in EXAMPLES])
def test_examples_are_valid(text, tmp_path):
    VALIDATOR.validate(yaml.safe_load(text))
    (tmp_path / "file.yaml").write_text(text)
    (tmp_path / "own_policy.py").write_text((ROOT / "examples" / "own_policy.py").read_text())
    check_experiment(read_experiment(tmp_path / "file.yaml"))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_file_can_say_all_that_the_catalogue_says(name):
    experiment = EXPERIMENTS[name]
    plain = json.loads(json.dumps(plain_experiment(experiment)))
    again = plain_to_experiment(plain)
    assert [cell.key for cell in cells_of(again)] == [cell.key for cell in cells_of(experiment)]
    assert [cell.policy.label for cell in cells_of(again)] == [cell.policy.label for cell in cells_of(experiment)]
    VALIDATOR.validate(plain)


@pytest.mark.parametrize(
    "values",
    [
        {"environment": "switching/1"},
        {**PLAIN, "enviroment": "switching/1"},
        {**PLAIN, "environment": "switchin/1"},
        {**PLAIN, "policies": []},
        {**PLAIN, "policies": ["OPBK"]},
        {**PLAIN, "seeds": 0},
        {**PLAIN, "seeds": [-1]},
        world(horizn=5),
        world(seed=5),
        world(noise={"name": "gausian"}),
        world(noise={"name": "gaussian", "s": 0.1}),
        world(kernel={"name": "rbf", "lenght_scale": 0.1}),
        world(kernel={"name": "sum", "terms": [{"name": "rfb"}]}),
        {**PLAIN, "environment": {"name": "real/digits", "settings": {"copy": "revered"}}},
        policy(lable="x"),
        policy(settings={"window": 5}),
        policy(settings={"horizon": 5}),
        policy(settings={"constants": "tund"}),
        policy(settings={"constants": {"preset": "tuned", "c9": 1}}),
        policy(kernel={"name": "rfb"}),
        policy(seeds=0),
    ],
)
def test_the_schema_and_the_library_refuse_the_same(values, tmp_path):
    assert not VALIDATOR.is_valid(values)
    (tmp_path / "file.json").write_text(json.dumps(values))
    with pytest.raises(InputError):
        check_experiment(read_experiment(tmp_path / "file.json"))


@pytest.mark.parametrize(
    "values",
    [
        PLAIN,
        {**PLAIN, "seeds": [3, 1], "common": {"out_of_range": "clip"}, "id": "a/b", "title": "A"},
        world(horizon=100, switches=[50], noise={"name": "uniform", "half_width": 0.1}, offset=0.1),
        world(kernel={"name": "product", "terms": [{"name": "rbf", "length_scale": 0.5}, {"name": "constant"}]}),
        policy(settings={"constants": {"c0": 2.0}, "variant": {"preset": "published"}}),
        policy(kernel={"name": "matern", "nu": 0.5}, label="told", seeds=2),
        policy("Master", settings={"base": "GPUCB", "base_settings": {"ridge": 0.1}}),
    ],
)
def test_the_schema_and_the_library_accept_the_same(values, tmp_path):
    VALIDATOR.validate(values)
    (tmp_path / "file.json").write_text(json.dumps(values))
    check_experiment(read_experiment(tmp_path / "file.json"))


def test_what_is_not_said_has_defaults(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("environment: switching/1\npolicies: [OPKB]\n")
    experiment = read_experiment(file)
    assert (experiment.id, experiment.title, experiment.seeds) == ("mine", "mine", DEFAULT_SEEDS)
    assert experiment.policies[0].label == "OPKB"


def test_classes_are_looked_for_beside_the_file_first(tmp_path, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        (folder / "own.py").write_text("")
    (there / "file.yaml").write_text("environment: own.py:World\npolicies: [own.py:Mine]\n")
    monkeypatch.chdir(here)
    experiment = read_experiment(there / "file.yaml")
    assert experiment.environment == f"{there / 'own.py'}:World"
    assert experiment.policies[0].name == f"{there / 'own.py'}:Mine"
    assert experiment.policies[0].label == "Mine"
    (there / "own.py").unlink()
    assert read_experiment(there / "file.yaml").policies[0].name == f"{here / 'own.py'}:Mine"


def test_all_wrong_keys_are_named_at_once(tmp_path):
    file = tmp_path / "file.yaml"
    file.write_text("enviroment: x\npolicies: [OPKB]\nseed: 3\n")
    with pytest.raises(InputError) as error:
        read_experiment(file)
    assert "file.yaml:1:1: there is no key 'enviroment'; did you mean 'environment'?" in str(error.value)
    assert "file.yaml:3:1: there is no key 'seed'; did you mean 'seeds'?" in str(error.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("policies: [OPKB]\nseeds: 0", "seeds must be a whole number from 1, or a list of seeds from 0, got 0"),
        ("policies: [{name: OPKB, seeds: [3]}]", "policies[0].seeds must be a whole number from 1, got [3]"),
    ],
)
def test_a_list_of_seeds_is_offered_only_where_one_is_taken(tmp_path, line, message):
    file = tmp_path / "file.yaml"
    file.write_text(f"environment: switching/1\n{line}\n")
    with pytest.raises(InputError) as error:
        read_experiment(file)
    assert str(error.value).endswith(message)


def test_nothing_near_is_no_hint():
    assert did_you_mean("zzz", ["abc"]) == ""
    assert did_you_mean("abd", ["abc"]) == "did you mean 'abc'? "


def test_all_that_is_wrong_in_a_file_is_said_at_once(tmp_path):
    path = tmp_path / "file.yaml"
    path.write_text("environment: {naem: switching/1}\npolicies:\n  - {name: OPKB, seeds: 0}\n  - 7\nsede: 3\n")
    with pytest.raises(InputError) as caught:
        read_experiment(path)
    said = str(caught.value).splitlines()
    parts = ["key 'naem' in environment", "policies[0].seeds must be", "policies[1] must be", "no key 'sede'"]
    assert len(said) == len(parts)
    assert all(any(part in line for line in said) for part in parts)
    assert all(line.startswith(f"{path}:") for line in said)


def test_all_that_a_file_cannot_mean_is_said_at_once(tmp_path):
    path = tmp_path / "file.yaml"
    path.write_text("environment: none.py:World\npolicies: [not.py:Mine, OPKB, OPKB]\nseeds: [1, 1]\n")
    with pytest.raises(InputError) as caught:
        read_experiment(path)
    said = str(caught.value).splitlines()
    parts = ["no file 'none.py'", "seeds must differ", "no file 'not.py'", "two policies are called 'OPKB'"]
    assert all(part in line for part, line in zip(parts, said, strict=True))
    assert all(line.startswith(f"{path}: ") for line in said)
