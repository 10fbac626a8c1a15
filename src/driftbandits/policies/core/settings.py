"""Settings of policies by name: those that all share, and which ones a class knows."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from driftbandits.errors import InputError, did_you_mean


class CommonSettings(TypedDict, total=False):
    """Settings that every policy takes; those with settings of their own hand them on to `Policy`."""

    horizon: int | None
    seed: int | None
    reward_range: tuple[float, float]
    out_of_range: Literal["error", "clip"]
    pending_limit: int


def check_settings(policy: type, settings: Mapping[str, Any]) -> None:
    """Refuse a setting that no constructor of `policy` knows, with the nearest one that exists."""
    known = known_settings(policy)
    for name in settings:
        if name not in known:
            hint = did_you_mean(name, known)
            raise InputError(f"{policy.__name__} has no setting {name!r}; {hint}known: {', '.join(sorted(known))}")


@functools.cache
def known_settings(policy: type) -> frozenset[str]:
    """Keyword arguments of the class's constructor and, where it passes others on, of those it inherits from."""
    names: set[str] = set()
    for kind in policy.__mro__:
        if "__init__" not in vars(kind) or kind is object:
            continue
        parameters = inspect.signature(vars(kind)["__init__"]).parameters.values()
        names |= {p.name for p in parameters if p.kind is p.KEYWORD_ONLY or p.name == "arms"}
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return frozenset(names - {"size"})  # how the forgetting forms hand their window, period or discount on
