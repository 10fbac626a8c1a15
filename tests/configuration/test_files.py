import re

import pytest

from driftbandits.configuration.files import read_config_file, read_value
from driftbandits.errors import InputError

MESSAGES = {"needs": ("log", "columns"), "example": "log: mine.csv"}


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-8", 1e-8), ("1E5", 1e5), ("-2.5e+3", -2500.0), (".5", 0.5), ("10_000", 10_000), ("e5", "e5"), ("1e", "1e")],
)
def test_numbers_are_read_as_people_write_them(text, value):
    assert read_value(text) == value
    assert type(read_value(text)) is type(value)


def test_yaml_may_not_make_objects(tmp_path):
    file = tmp_path / "file.yaml"
    file.write_text("environment: !!python/object/apply:os.system ['true']\npolicies: [OPKB]\n")
    with pytest.raises(InputError, match=re.escape("file.yaml:1:14: could not determine a constructor")):
        read_config_file(file, **MESSAGES)


def test_a_place_inside_is_found_as_far_as_it_exists(tmp_path):
    file = tmp_path / "file.yaml"
    file.write_text("policies:\n  - name: OPKB\n    settings:\n      a: 1\n")
    read = read_config_file(file, **MESSAGES)
    assert read.where(("policies", 0, "settings", "a")) == f"{file}:4:7"
    assert read.where(("policies", 0, "nothing")) == f"{file}:2:5"
    toml = tmp_path / "file.toml"
    toml.write_text("seeds = 3\n")
    assert read_config_file(toml, **MESSAGES).where(("seeds",)) == str(toml)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty; it needs at least 'log' and 'columns'"),
        ("[1, 2]", "holds a list; it must hold keys with values, as in 'log: mine.csv'"),
    ],
)
def test_what_holds_no_keys_is_refused_with_an_example(tmp_path, text, said):
    file = tmp_path / "file.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=re.escape(said)):
        read_config_file(file, **MESSAGES)


def test_all_wrong_keys_of_a_file_are_said_at_once(tmp_path):
    path = tmp_path / "file.yaml"
    path.write_text("a: 1\na: 2\nb: {1: x, c: 2, c: 3}\n")
    with pytest.raises(InputError) as caught:
        read_config_file(path, needs=("a",), example="a: 1")
    assert str(caught.value).splitlines() == [
        f"{path}:2:1: 'a' is given twice",
        f"{path}:3:5: the key '1' is not a text; put it in quotes",
        f"{path}:3:17: 'c' is given twice",
    ]
    with pytest.raises(InputError, match="'a' is given twice"):
        read_value("{a: 1, a: 2}")
