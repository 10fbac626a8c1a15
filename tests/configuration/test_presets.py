import pytest

from driftbandits import Constants, Variant
from driftbandits.configuration.models import PRESETS, plain_settings, read_settings
from driftbandits.errors import InputError


@pytest.mark.parametrize("name", PRESETS["constants"])
def test_constants_by_name_and_with_what_differs(name):
    plain = PRESETS["constants"][name]()
    assert read_settings({"constants": name})["constants"] == plain
    changed = read_settings({"constants": {"preset": name, "c0": 9.0}})["constants"]
    assert changed.c0 == 9.0
    assert changed.c1 == plain.c1


def test_presets_inside_the_settings_of_a_base_policy():
    read = read_settings({"base": "OPKB", "base_settings": {"variant": "published"}})
    assert read["base_settings"]["variant"] == Variant.published()


def test_settings_go_there_and_back():
    settings = {"constants": Constants.published(), "variant": Variant.paper(), "window": 5, "base_settings": {"a": 1}}
    assert read_settings(plain_settings(settings)) == settings


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"constants": "nothing"}, "constants has no preset 'nothing'"),
        ({"constants": {"preset": "tuned", "c9": 1}}, "constants has no setting 'c9'"),
        ({"variant": 3}, "variant must be one of paper, published"),
    ],
)
def test_what_is_no_preset_is_refused(settings, said):
    with pytest.raises(InputError, match=said):
        read_settings(settings)
