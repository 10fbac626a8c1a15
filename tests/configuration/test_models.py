import re

import pytest

from driftbandits.configuration.files import read_config_file
from driftbandits.configuration.models import NamedEnvironment, NamedPolicy, StrictModel, validated
from driftbandits.errors import InputError


class Log(StrictModel):
    world: NamedEnvironment
    rivals: list[NamedPolicy]


def read(tmp_path, text):
    file = tmp_path / "log.yaml"
    file.write_text(text)
    return validated(Log, read_config_file(file, needs=("world",), example="world: switching/1"))


def test_a_name_alone_is_a_mapping_with_that_name(tmp_path):
    log = read(tmp_path, "world: switching/1\nrivals: [OPKB, {name: GPUCB, label: mine}]\n")
    assert log.world.name == "switching/1"
    assert [(rival.name, rival.label) for rival in log.rivals] == [("OPKB", None), ("GPUCB", "mine")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("world: a\nrivals: [b]\nrivalls: [c]\n", "log.yaml:3:1: there is no key 'rivalls'; did you mean 'rivals'? "),
        (
            "world: a\nrivals:\n  - {name: b, lable: c}\n",
            "log.yaml:3:15: there is no key 'lable' in rivals[0]; did you mean 'label'? valid: name, label, ",
        ),
        ("world: {name: a, setings: {}}\nrivals: []\n", "did you mean 'settings'? valid: name, settings"),
        ("world: a\n", "rivals is missing"),
        ("world: 3\nrivals: []\n", "world must be a name, or a mapping with 'name' and 'settings', got 3"),
    ],
)
def test_what_is_wrong_is_said_with_its_place_in_any_model(tmp_path, text, said):
    with pytest.raises(InputError, match=re.escape(said)):
        read(tmp_path, text)
