"""How long a policy waits for rewards, and what one that does not come means: settings of every policy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from driftbandits.checks import check_count, check_word
from driftbandits.errors import InputError
from driftbandits.numeric import as_float
from driftbandits.policies.core.scale import RewardScale
from driftbandits.showing import shown

FORGET: Literal["forget"] = "forget"


@dataclass(frozen=True, slots=True)
class Waiting:
    """Checked settings. `value` is the reward of what is missing on the internal scale, None where it has none."""

    order: Literal["told", "asked"]
    patience: int | None
    missing: float | Literal["forget"] | None
    value: float | None


def read_waiting(order: Any, patience: Any, missing: Any, scale: RewardScale) -> Waiting:
    """The settings `order`, `patience` and `missing`; patience implies the order asked.

    >>> read_waiting("told", 600, 0, RewardScale(0.0, 2.0))
    Waiting(order='asked', patience=600, missing=0.0, value=-1.0)
    """
    order = check_word("order", order, ("told", "asked"))
    kept = _read_missing(missing, scale)
    if patience is not None:
        patience = check_count("patience", patience, cure="it is a number of rounds; None waits for ever")
        if kept is None:
            raise InputError(
                f"patience={patience} needs missing: say what a decision whose reward has not come by then is worth, "
                f"such as missing={scale.low:g}, or missing='forget' if that says nothing about the reward; there is "
                f"no safe default, for where only successes are reported, forgetting the rest teaches that all succeed"
            )
        order = "asked"
    value = None if kept is None or kept == FORGET else scale.inward(float(kept))
    return Waiting(order=order, patience=patience, missing=kept, value=value)


def _read_missing(missing: Any, scale: RewardScale) -> float | Literal["forget"] | None:
    if missing is None:
        return None
    if isinstance(missing, str):
        return check_word("missing", missing, (FORGET,), cure="or a number within reward_range")  # type: ignore[return-value]
    try:
        value = math.nan if isinstance(missing, bool) else as_float(missing)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not scale.low <= value <= scale.high:
        raise InputError(
            f"missing must be 'forget' or a number within reward_range=({scale.low:g}, {scale.high:g}), got "
            f"{shown(missing)}"
        )
    return value


def shown_waiting(order: str, patience: int | None, missing: float | str | None) -> dict[str, Any]:
    """What of these settings is to be shown: what is not usual, and not implied.

    >>> shown_waiting("asked", 600, 0.0), shown_waiting("told", None, None)
    ({'patience': 600, 'missing': 0.0}, {})
    """
    given = {"order": None if order == "told" or patience is not None else order, "patience": patience}
    return {name: value for name, value in {**given, "missing": missing}.items() if value is not None}
