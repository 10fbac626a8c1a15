import pytest

from driftbandits.configuration.presets import read_settings
from driftbandits.errors import InputError
from driftbandits.experiments.definitions.tuned_settings import tuned_spec


def test_tuned_settings_by_label():
    assert tuned_spec("SW-GPUCB", 10).name == "SlidingWindowGPUCB"
    read_settings(tuned_spec("SW-GPUCB", 10).settings)
    with pytest.raises(InputError, match="no tuned settings for 'SWGPUCB'"):
        tuned_spec("SWGPUCB", 10)
