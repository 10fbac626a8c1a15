"""Whatever a newcomer does wrong ends in one clear message, the right exit code, and nothing on standard output."""

import pytest

from driftbandits.experiments.runner import RunInterruptedError

WORLD = (
    *("run", "--environment", "switching/1", "--jobs", "1", "--seeds", "1", "--out", "out", "--set", "size=10"),
    *("--set", "horizon=200", "--set", "switches=[100]"),
)
UNIFORM = (*WORLD, "--policy", "Uniform")
FILES = {
    "empty.yaml": "",
    "comment.yaml": "# nothing\n",
    "list.yaml": "- environment\n",
    "word.yaml": "environment\n",
    "broken.yaml": "environment: switching/1\npolicies: [AdaOPKB\nseeds: 3\n",
    "tab.yaml": "environment: switching/1\npolicies:\n\t- AdaOPKB\n",
    "twice.yaml": "environment: switching/1\nseeds: 1\npolicies: [OPKB]\nseeds: 2\n",
    "key.yaml": "enviroment: switching/1\npolicies: [OPKB]\n",
    "inner.yaml": "environment: switching/1\npolicies:\n  - OPKB\n  - name: OPKB\n    lable: two\n",
    "setting.yaml": "environment: {name: switching/1, settings: {horizn: 5}}\npolicies: [OPKB]\n",
    "missing.yaml": "environment: switching/1\n",
    "nobody.yaml": "environment: switching/1\npolicies: []\n",
    "number.yaml": "environment: switching/1\npolicies: [3]\n",
    "zero.yaml": "environment: switching/1\npolicies: [OPKB]\nseeds: 0\n",
    "seeds.yaml": "environment: switching/1\npolicies: [OPKB]\nseeds: [1, 1]\n",
    "same.yaml": "environment: switching/1\npolicies: [OPKB, OPKB]\n",
    "broken.toml": "environment = 'switching/1'\npolicies = [1 2]\n",
    "cut.toml": "environment = 'switching/1'\npolicies = [",
    "mine.txt": "environment: switching/1\n",
    "latin.yaml": "title: caf\xe9\n",
    "integer.yaml": "environment: switching/1\npolicies: [OPKB]\n7: 1\n",
    "listed.yaml": "environment: switching/1\npolicies: [OPKB]\n? [a, b]\n: 1\n",
    "setting_key.yaml": "environment: {name: switching/1, settings: {on: 5}}\npolicies: [OPKB]\n",
    "deep.yaml": f"environment: switching/1\npolicies: [OPKB]\ncommon: {{a: {'[' * 3000}{']' * 3000}}}\n",
    "deep.toml": f"environment = 'switching/1'\npolicies = {'[' * 3000}{']' * 3000}\n",
    "laughs.yaml": "environment: switching/1\npolicies: [OPKB]\ncommon:\n  a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
    + "".join(f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)),
    "loop.yaml": "environment: switching/1\npolicies: [OPKB]\ncommon: {a: &a [*a]}\n",
    "date.yaml": "environment: switching/1\npolicies: [OPKB]\ncommon: {a: 2024-13-13}\n",
    "large.yaml": "#" * (10 * 2**20 + 1),
    "dots.yaml": "id: '..'\nenvironment: switching/1\npolicies: [OPKB]\n",
    "many.yaml": "environment: switching/1\npolicies: [OPKB]\nseeds: 1000000000\n",
    "exiting.py": "import sys\nsys.exit(0)\n",
    "policies.py": "import driftbandits as db\nNumber = 3\nclass Plain:\n    pass\nclass Half(db.Policy):\n    pass\n",
    "syntax.py": "class Mine(:\n",
    "importing.py": "import nothing_of_this_name\n",
    "worlds.py": "class Plain:\n    pass\ndef world(seed, rounds=5):\n    return rounds\ndef none():\n    return 1\n",
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="latin-1")
    return tmp_path


def joining(policy):
    return ("reproduce", "small", "--policy", policy)


def world(environment, *more):
    return ("run", "--environment", environment, "--policy", "Uniform", *more)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("reproduce", "switchin/1"), "did you mean 'switching/1'?"),
        (joining("AdaOPBK"), "did you mean 'AdaOPKB'?"),
        (joining("nowhere.py:Mine"), "there is no file 'nowhere.py'"),
        (joining("nowhere:Mine"), "there is no module 'nowhere'"),
        (joining("policies.py:Plain"), "not one derived from driftbandits.Policy"),
        (joining("policies.py:Half"), "abstract"),
        (joining("policies.py:Number"), "is 3; name a class"),
        (joining("policies.py:Nothing"), "has no 'Nothing'; it has: db, Number, Plain, Half"),
        (joining("syntax.py:Mine"), "SyntaxError: invalid syntax (syntax.py, line 1)"),
        (joining("importing.py:Mine"), "No module named 'nothing_of_this_name' (importing.py, line 1)"),
        (joining("Uniform,label=chance"), "two policies are called 'chance'"),
        (joining("OPKB,window"), "'window' is not a setting; write key=value"),
        (joining("SlidingWindowGPUCB,windo=5"), "did you mean 'window'?"),
        (joining("OPKB,constants=tund"), "did you mean 'tuned'?"),
        (joining("OPKB,constants.sigm=1"), "did you mean 'sigma'?"),
        (joining("OPKB,constants=3"), "constants must be one of"),
        (joining("Master,base=OPKB,base_settings.variant=papr"), "did you mean 'paper'?"),
        (joining("OPKB,horizon=5"), "set the horizon of the environment"),
        ((*UNIFORM, "--set", "horizon=0"), "horizon must be at least 1, got 0"),
        ((*UNIFORM, "--set", "horizn=5"), "did you mean 'horizon'?"),
        ((*UNIFORM, "--set", "noise.name=gausian"), "did you mean 'gaussian'?"),
        ((*UNIFORM, "--set", "noise={name: gaussian, s: 1}"), "did you mean 'sd'?"),
        ((*UNIFORM, "--set", "noise={name: gaussian, sd: 1}"), "out_of_range='clip'"),
        ((*UNIFORM, "--set", "kernel.name=rfb"), "did you mean 'rbf'?"),
        ((*UNIFORM, "--set", "seed=1"), "the seeds are those of the experiment"),
        ((*UNIFORM, "--out", "mine.txt"), "cannot"),
        ((*UNIFORM, "--out", "mine.txt/below"), "cannot"),
        ((*UNIFORM, "--out", "/proc/nothing"), "cannot write to /proc/nothing"),
        (world("switchin/1"), "did you mean 'switching/1'?"),
        (world("worlds.py:Plain"), "not one derived from driftbandits.environments.Environment"),
        (world("worlds.py:world", "--set", "round=5"), "did you mean 'rounds'?"),
        (world("worlds.py:world"), "gave int; it must give a driftbandits Environment"),
        (world("worlds.py:none"), "has no setting 'seed'"),
        (world("real/digit"), "did you mean 'digits'?"),
        (world("real/digits", "--set", "copi=reversed"), "did you mean 'copy'?"),
        (world("real/digits", "--seeds", "6"), "seeds 0 to 4"),
        (("run", "nowhere.yaml"), "there is no file 'nowhere.yaml'"),
        (("run", "mine.txt"), "it must end in .yaml"),
        (("run", "latin.yaml"), "is not UTF-8 text"),
        (("run", "."), "neither YAML nor TOML"),
        (("run", "empty.yaml"), "empty.yaml is empty"),
        (("run", "comment.yaml"), "comment.yaml is empty"),
        (("run", "list.yaml"), "holds a list"),
        (("run", "word.yaml"), "holds the value 'environment'"),
        (("run", "broken.yaml"), "broken.yaml:3:6: "),
        (("run", "tab.yaml"), "tab.yaml:3:1: "),
        (("run", "twice.yaml"), "twice.yaml:4:1: 'seeds' is given twice"),
        (("run", "broken.toml"), "broken.toml:2:15: "),
        (("run", "cut.toml"), "cut.toml:2:13: "),
        (("run", "key.yaml"), "key.yaml:1:1: there is no key 'enviroment'; did you mean 'environment'?"),
        (("run", "inner.yaml"), "inner.yaml:5:5: there is no key 'lable' in policies[1]; did you mean 'label'?"),
        (("run", "setting.yaml"), "setting.yaml: environment 'switching/1' has no setting 'horizn'; did you mean"),
        (("run", "missing.yaml"), "missing.yaml:1:1: policies is missing"),
        (("run", "nobody.yaml"), "nobody.yaml:2:1: policies"),
        (("run", "number.yaml"), "number.yaml:2:12: policies[0] must be a name"),
        (("run", "zero.yaml"), "zero.yaml:3:1: seeds must be a whole number from 1"),
        (("run", "seeds.yaml"), "seeds must differ"),
        (("run", "same.yaml"), "two policies are called 'OPKB'"),
        (("run", "integer.yaml"), "integer.yaml:3:1: the key '7' is not a text; put it in quotes"),
        (("run", "listed.yaml"), "listed.yaml:3:3: the key is not a text; put it in quotes"),
        (("run", "setting_key.yaml"), "setting_key.yaml:1:45: the key 'on' is not a text; put it in quotes"),
        (("run", "deep.yaml"), "deep.yaml:3:61: it is nested more than 50 levels deep"),
        (("run", "deep.toml"), "deep.toml is nested too deep"),
        (("run", "laughs.yaml"), "laughs.yaml:9:12: it holds more than 100,000 values"),
        (("run", "loop.yaml"), "loop.yaml:3:17: an alias stands inside of what it stands for"),
        (("run", "date.yaml"), "date.yaml:3:13: month must be in 1..12"),
        (("run", "large.yaml"), "large.yaml has more than 10 MiB"),
        (("run", "dots.yaml"), "dots.yaml: id '..' cannot name a folder"),
        (("run", "many.yaml"), "many.yaml: seeds must be at most 1,000,000, got 1000000000"),
        ((*UNIFORM, "--seeds", "1000000000"), "seeds must be at most 1,000,000"),
        ((*UNIFORM, "--set", "horizon=1000000000000"), "more than 100,000,000 in one run"),
        ((*UNIFORM, "--set", "size=10000000"), "more than 100,000; use fewer"),
        ((*UNIFORM, "--set", f"size={'[' * 3000}"), "more than 50 levels deep"),
        ((*UNIFORM, "--set", "size=2024-13-13"), "'2024-13-13' is not a value: month must be in 1..12"),
        (joining("exiting.py:Mine"), "policy 'Mine' cannot be loaded: SystemExit: 0 (exiting.py, line 2)"),
        (joining("OPKB,label='a\u2028b'"), "has the control character '\\u2028'"),
        (("report", "nowhere"), "there is no nowhere/run.json"),
        (("tune", "comparison", "OPBK"), "did you mean 'OPKB'?"),
    ],
)
def test_a_mistake_ends_in_one_message_that_names_the_cure(cli, folder, arguments, said):
    result = cli(*arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith("driftbandits: ")
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""
    assert not (folder / "out").exists()
    assert not (folder / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fly",), "No such command 'fly'"),
        (("reproduce", "--sead", "3"), "--seeds"),
        (("reproduce", "small", "--seeds", "0"), "--seeds"),
        (("reproduce", "small", "--seeds", "many"), "--seeds"),
        (("reproduce", "small", "--jobs", "0"), "use -1 for one process per core"),
        (("reproduce", "small", "--engine", "rey"), "did you mean 'ray'?"),
        (("reproduce", "small", "--address", "tcp://here:1"), "loky plays on this machine"),
        (("reproduce", "small", "--quick", "--full"), "exclude each other"),
        (("run",), "give either a file or --environment"),
        (("run", "empty.yaml", "--environment", "switching/1"), "give either a file or --environment"),
        (WORLD, "name who plays"),
        (("report",), "FOLDER"),
        (("tune",), "STUDY"),
        (("tune", "constant"), "constants"),
        (("tune", "constants", "OPKB"), "labels are for comparison"),
        (("tune", "oracles", "--storage", "sqlite://"), "not in a storage"),
        (("list", "polices"), "policies"),
    ],
)
def test_wrong_usage(cli, folder, arguments, said):
    result = cli(*arguments)
    assert result.exit_code == 2
    assert "Usage: driftbandits" in result.stderr
    assert said in result.stderr
    assert result.stdout == ""


def test_an_interruption_says_what_is_kept_and_how_to_go_on(cli, monkeypatch):
    def interrupted(*arguments, **settings):
        raise RunInterruptedError("interrupted; 1 of 6 cells are finished and safe in out: play the same again")

    monkeypatch.setattr("reproduction.passes.play_passes", interrupted)
    result = cli("reproduce", "small", "--out", "out")
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1].startswith("driftbandits: interrupted; 1 of 6")
    assert result.stderr.splitlines()[-1].endswith("play the same again, with --resume")


def test_an_interruption_elsewhere(cli, monkeypatch):
    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr("reproduction.commands.choose", interrupted)
    result = cli("reproduce", "small")
    assert result.exit_code == 130
    assert result.stderr == "driftbandits: interrupted\n"


OWN = """
import os
import driftbandits as db
class Failing(db.Uniform):
    def _learn(self, feedback):
        if self.rounds > 100:
            {deed}
"""


def test_a_run_that_fails_names_policy_world_seed_and_line(cli, folder):
    (folder / "own.py").write_text(OWN.format(deed="return 1 / 0"))
    result = cli(*WORLD, "--policy", "own.py:Failing")
    assert result.exit_code == 1
    assert "driftbandits: Failing on switching/1, seed 0 failed: ZeroDivisionError" in result.stderr
    assert "own.py, line 7" in result.stderr
    assert "--resume" in result.stderr
    assert "Traceback" not in result.stderr
    shown = cli("--traceback", *WORLD, "--policy", "own.py:Failing", "--resume")
    assert "Traceback" in shown.stderr
    assert "return 1 / 0" in shown.stderr


def test_a_policy_that_ends_the_program_fails_the_run(cli, folder):
    (folder / "own.py").write_text(OWN.format(deed="raise SystemExit(0)"))
    result = cli(*WORLD, "--policy", "own.py:Failing")
    assert result.exit_code == 1
    assert "driftbandits: Failing on switching/1, seed 0 failed: SystemExit: 0 (own.py, line 7)" in result.stderr
    assert result.stdout == ""


LAW = """
import numpy as np
import driftbandits as db
class Unlawful(db.Uniform):
    def _law(self):
        return np.full(len(self.arms), {entry}) if self.rounds >= {first} else super()._law()
    def _steady(self):
        return 1
"""


@pytest.mark.parametrize(("entry", "fault"), [("np.nan", "nan"), ("2.0", "sums to 20"), ("-0.1", "-0.1")])
@pytest.mark.parametrize("first", [0, 100])
def test_a_law_that_is_none_fails_the_run_and_names_the_class(cli, folder, entry, fault, first):
    (folder / "own.py").write_text(LAW.format(entry=entry, first=first))
    result = cli(*WORLD, "--policy", "own.py:Unlawful,label=mine")
    assert result.exit_code == 1
    last = result.stderr.splitlines()[-1]
    assert "Unlawful" in last
    assert fault in last
    assert result.stdout == ""
    assert not (folder / "out" / "report.html").exists()


def test_a_killed_worker_is_told_of(cli, folder):
    (folder / "own.py").write_text(OWN.format(deed="os._exit(9)"))
    result = cli(*WORLD, "--policy", "own.py:Failing", "--jobs", "2", "--seeds", "2")
    assert result.exit_code == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith("driftbandits: a worker of loky was killed")
    assert "os._exit" in last
    assert "probably under way: Failing on switching/1, seed 0" in last
    assert "--resume" in last
    assert result.stdout == ""


def test_an_error_nobody_thought_of_is_one_line_too(cli, monkeypatch):
    def odd(*arguments, **settings):
        raise RuntimeError("something odd")

    monkeypatch.setattr("reproduction.commands.choose", odd)
    result = cli("reproduce", "small")
    assert result.exit_code == 1
    assert result.stderr == "driftbandits: RuntimeError: something odd (driftbandits --traceback ... shows where)\n"
    assert "Traceback" in cli("--traceback", "reproduce", "small").stderr


@pytest.mark.parametrize(("package", "extra"), [("pandas", "experiments"), ("optuna", "tuning"), ("ray", "ray")])
def test_a_missing_package_is_answered_with_its_extra(cli, monkeypatch, package, extra):
    def missing(*arguments, **settings):
        raise ModuleNotFoundError(f"No module named {package!r}", name=f"{package}.inner")

    monkeypatch.setattr("reproduction.commands.choose", missing)
    assert f"pip install '.[{extra}]'" in cli("reproduce", "small").stderr
