"""What is checked and drawn alike, whatever the rewards of a world with switches are drawn from."""

import pytest

from driftbandits.environments.linear import SwitchingLinear
from driftbandits.environments.switching import SwitchingKernel
from driftbandits.errors import InputError

WORLDS = pytest.mark.parametrize("world", [SwitchingKernel, SwitchingLinear])
SMALL = {"seed": 3, "size": 6, "dimension": 2, "horizon": 5_000}


@WORLDS
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "turn"}, "kind"),
        ({"seed": -1}, "seed"),
        ({"switches": (40, 30)}, "switches must rise"),
        ({"switches": (5_000,)}, "outside the horizon"),
        ({"horizon": 0}, "horizon"),
    ],
)
def test_what_cannot_be_is_refused(world, settings, message):
    with pytest.raises(InputError, match=message):
        world.sample(**SMALL | settings)


@WORLDS
def test_arms_must_be_arms(world):
    with pytest.raises(InputError, match="arms must be an ArmSet"):
        world([[0.0], [1.0]], horizon=10)


@WORLDS
def test_a_drawn_world_has_one_switch_and_says_its_seed(world):
    drawn = world.sample(**SMALL)
    assert drawn.change_rounds.tolist() == [3000]
    assert drawn.seed == 3
    assert "seed=3" in repr(drawn)


@WORLDS
def test_kinds_of_the_other_are_not_taken_for_its_own(world):
    """Both have flips; hidden changes are those of a kernel."""
    assert world.sample(**SMALL, kind="flip").segments == 2
    if world is SwitchingLinear:
        with pytest.raises(InputError, match="'redraw'"):
            world.sample(**SMALL, kind="hidden")
