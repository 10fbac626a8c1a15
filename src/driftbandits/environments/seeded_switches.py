"""What worlds with switches have in common, whatever their rewards are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from driftbandits.arms import ArmSet
from driftbandits.checks import check_count, check_word
from driftbandits.environments.checks import check_arm_set
from driftbandits.environments.piecewise import Piecewise, check_switches
from driftbandits.environments.sampling import SphereWorld
from driftbandits.seeding import check_seed


class SeededSwitches(Piecewise, SphereWorld):
    """Rewards drawn by a seed, with a change of some kind at each of `switches`."""

    _kind: str
    _seed: int

    def _check_changes(
        self,
        arms: ArmSet,
        *,
        horizon: int,
        switches: Sequence[int],
        kind: str,
        kinds: Sequence[str],
        seed: int | None,
    ) -> tuple[int, ...]:
        """Keep kind and seed, and give the switches, once all of them and the arms are known to be usable."""
        self._kind = check_word("kind", kind, kinds)
        self._seed = check_seed(seed)
        rounds = check_switches(switches, check_count("horizon", horizon))
        check_arm_set(arms)
        return rounds

    @classmethod
    def sample(cls, *, switches: Sequence[int] = (3000,), **settings: Any) -> Self:
        """World on drawn arms, with one switch unless others are given; of `SwitchingKernel` the paper's environment 1.

        `settings` are those of the class, and of `SphereWorld.sample` or, for a linear world, `LinearWorld.sample`.

        Parameters
        ----------
        switches : rounds in which it changes
        settings : those of the class, and of `SphereWorld.sample` or, for a linear world, `LinearWorld.sample`

        Returns
        -------
        a world of this class
        """
        return super().sample(switches=switches, **settings)

    @property
    def seed(self) -> int:
        """Seed of all that is drawn."""
        return self._seed

    def _settings(self) -> dict[str, Any]:
        return {"horizon": self._horizon, "switches": self._switches, "kind": self._kind, "seed": self._seed}
