import sys

import pytest

from driftbandits.configuration.references import is_reference, load, resolve, source_of
from driftbandits.errors import InputError
from driftbandits.experiments.specs import Cell, PolicySpec


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "own.py"
    file.write_text(
        "from dataclasses import dataclass\nimport beside\n@dataclass\nclass Mine:\n    a: int = beside.A\n"
    )
    (tmp_path / "beside.py").write_text("A = 7\n")
    return file


def test_registered_names_stay_as_they_are():
    assert not is_reference("switching/1")
    assert resolve("AdaOPKB") == "AdaOPKB"
    assert source_of("AdaOPKB") is None


def test_a_file_is_found_from_here_and_named_for_good(own):
    assert resolve("own.py:Mine") == resolve("own:Mine") == resolve(f"{own}:Mine") == f"{own}:Mine"
    assert resolve("package.module:Mine") == "package.module:Mine"


def test_a_class_is_loaded_with_its_neighbours(own):
    path = list(sys.path)
    assert load(resolve("own.py:Mine"))().a == 7
    assert sys.path == path
    assert load("json:JSONDecoder").__name__ == "JSONDecoder"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing.py:Mine", "there is no file 'nothing.py'"),
        ("own.py:Other", "has no 'Other'; it has: dataclass, beside, Mine"),
        ("nothing_here:Mine", "there is no module 'nothing_here'"),
        ("nothing.inside:Mine", "there is no module 'nothing.inside'"),
        ("json:Nothing", "json has no 'Nothing'"),
    ],
)
def test_what_is_not_there(own, name, said):
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        load(resolve(name))


def test_a_file_that_is_gone_by_the_time_a_worker_reads_it(tmp_path):
    with pytest.raises(InputError, match="workers read it at the same path"):
        load(f"{tmp_path}/gone.py:Mine")


def test_editing_the_file_makes_a_new_run(own):
    def key():
        return Cell("switching/1", {}, PolicySpec("mine", resolve("own.py:Mine")), 0).key

    before = key()
    assert key() == before
    own.write_text(own.read_text() + "# changed\n")
    assert key() != before


def test_the_digest_is_that_of_a_module_too():
    assert source_of("json:JSONDecoder") == source_of("json:JSONEncoder")
    assert len(source_of("json:JSONDecoder")) == 64
    assert source_of("nothing_here:Mine") is None


def test_a_module_that_was_changed_after_it_was_loaded_is_refused(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "changing_module.py"
    file.write_text("class Mine:\n    a = 1\n")
    assert load("changing_module:Mine").a == 1
    file.write_text("class Mine:\n    a = 2\n")
    with pytest.raises(InputError, match="changed after it was loaded; begin again in a new process"):
        load("changing_module:Mine")
