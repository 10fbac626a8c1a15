"""Detection-augmented learning (DAL) around any policy: it is played anew when a watched arm has changed.

symbol    name           meaning
C, n_C    cover          the arms that are watched, and their number
alpha_k   share of forced rounds in episode k (from 1), exploration sqrt(k n_C log T / T)
tau       round of the last restart
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from driftbandits import state as states
from driftbandits._util.checks import check_count, check_positive, check_probability
from driftbandits.arms.arm_set import ArmSet
from driftbandits.detection.detector import kernel_cover
from driftbandits.detection.glr import (
    carry_histories,
)
from driftbandits.errors import InputError, StateError
from driftbandits.policies.algorithm import Family, OneByOne
from driftbandits.policies.arm_migration import ArmsChange
from driftbandits.policies.base import Policy
from driftbandits.policies.decisions import Row
from driftbandits.policies.optimistic import WatchedCover
from driftbandits.policies.rivals.nested import NestingPolicy, find_base, read_settings


class DetectionAugmented(WatchedCover, OneByOne, NestingPolicy):
    """DAL (Gerogiannis, Huang, Bose and Veeravalli 2025) around any policy that learns rewards one by one.

    A cover of a few arms is watched (`kernel_cover`: each tells most of what those before it leave open). Every episode
    goes through the cover once, and again every floor(n_C / alpha_k) rounds; in all other rounds the base plays. Each
    reward of a watched arm enters its generalised likelihood ratio test (`detection.glr`), and an alarm begins an
    episode with a fresh base. `DetectionAugmentedGPUCB` is the same around GP-UCB, quicker. Bad at changes that the
    cover does not see, and at drift too slow for its tests; its forced rounds cost what the cover's arms cost.

    Parameters
    ----------
    base : the policy that is played, a class or its name; one that learns rewards one by one, whatever law drew them:
        GP-UCB's family, Thompson sampling, UCB
    base_settings : its settings
    cover : how many arms are watched at most; fewer where the kernel has a lower rank, and then none is overlooked
    exploration : alpha_0; the theory has 1, a tenth of all rounds with 10 arms in 10,000 rounds; 0 for none, then a
        change is found only where the base plays a watched arm
    noise : R of the tests, in the user's units; default a tenth of half the reward range. Noise that is really larger
        means false alarms; half the range is safe for any rewards
    failure_probability : delta of all tests together: each test has delta / n_C
    others : see `Policy`

    Forced rounds and tests are those of `DetectionAugmentedGPUCB`. Rewards of forced rounds teach the base too. Rewards
    of rounds asked before a restart and told after it are counted in `late`. Cost per round: that of the base, and at
    most 512 numbers for a test.

    >>> policy = DetectionAugmented(ArmSet([[0.0], [0.5], [1.0]]), base="ThompsonSampling", horizon=1000, seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """

    family = Family.WRAPPER
    _numbers_rounds = True

    def __init__(
        self,
        arms: ArmSet,
        *,
        base: str | type[Policy] = "GPUCB",
        base_settings: Mapping[str, Any] | None = None,
        cover: int = 10,
        exploration: float = 0.3,
        noise: float | None = None,
        failure_probability: float = 0.01,
        **settings: Any,
    ) -> None:
        super().__init__(arms, **settings)
        self.base: type[Policy] = find_base(base, Policy)  # type: ignore[type-abstract]
        if not issubclass(self.base, OneByOne) or issubclass(self.base, NestingPolicy) or self.base._needs_own_law:
            raise InputError(
                f"base must learn rewards one by one, whatever law drew them, and {self.base.__name__} does not; "
                "GPUCB, ThompsonSampling and UCB1 do"
            )
        self.base_settings = read_settings(base_settings)
        self.cover = check_count("cover", cover)
        self.exploration = check_positive("exploration", exploration, zero=True)
        self.noise = None if noise is None else check_positive("noise", noise)
        self.failure_probability = check_probability("failure_probability", failure_probability)
        self._noise = self._scale.noise(self.noise)

    def _start(self, horizon: int | None) -> None:
        self._watched = kernel_cover(self.arms.features, self.cover).tolist()
        self._episode = 1
        self._open_episode()

    def _open_episode(self) -> None:
        super()._open_episode()
        self._inner._begin_once()

    def _derive(self) -> None:
        """And a base that has not begun."""
        super()._derive()
        left = self._phase_start + self._phase_length - self._origin
        self._inner = self._new_base(self.base, self.base_settings, horizon=max(left, 1))

    # --- deciding -----------------------------------------------------------------------------------------------

    @property
    def _playing(self) -> Policy:
        return self._inner

    def _left(self) -> int:
        return 1  # whose turn it is changes with the round

    def _stamp(self) -> tuple[int, int]:
        return self.rounds, self._inner._stamp()[1]

    def _drawn(self, arms: Sequence[int], counted: bool) -> None:
        self._follow_base(self._inner, arms, counted)

    def _due(self) -> bool:
        return self._inner._due()

    def _turn(self) -> None:
        self._turn_base(self._inner)

    # --- learning -----------------------------------------------------------------------------------------------

    def _learn_present(self, row: Row, reward: float) -> None:
        own = Row(row.id - self._origin, row.arm, row.law - self._origin, row.tag, row.probability)
        self._teach_base(self._inner, own, reward)

    # --- state --------------------------------------------------------------------------------------------------

    def _carry(self, old: Self, change: ArmsChange) -> None:
        """The base begins anew on the new arms; the tests of watched arms that stay go on in its episode."""
        self._start_with_arms(change, epoch=old._episode - 1)
        self._episode = old._episode
        kept = carry_histories(old._histories, change.target)
        self._histories = {arm: history for arm, history in kept.items() if arm in self._watched}
        self._derive()
        self._inner._begin_once()

    def _export(self) -> dict[str, Any]:
        return {**super()._export(), "base": self._export_base(self._inner)}

    def _import(self, state: states.Reader) -> None:
        super()._import(state)
        self._load_base(self._inner, state.reader("base"))
        if self._inner.rounds != self.rounds - self._origin:
            raise StateError("state.base has another number of rounds than its episode")
        open_ids = self._awaited()["id"]
        self._check_base_untold(self._inner, open_ids[open_ids >= self._origin] - self._origin)
