"""Settings of policies by name: those that all share, and which ones a class knows."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from driftbandits.errors import InputError, did_you_mean
from driftbandits.showing import shown


class CommonSettings(TypedDict, total=False):
    """Settings that every policy takes; those with settings of their own hand them on to `Policy`."""

    horizon: int | None
    seed: int | None
    reward_range: tuple[float, float]
    out_of_range: Literal["error", "clip"]
    pending_limit: int
    order: Literal["told", "asked"]
    patience: int | None
    missing: float | Literal["forget"] | None


COMMON_SETTINGS = tuple(CommonSettings.__annotations__)


def check_settings(policy: type, given: Sequence[Any], settings: Mapping[str, Any]) -> None:
    """Refuse what no constructor of `policy` takes: too much by position, or a name, with the nearest that exists."""
    parameters = inspect.signature(policy).parameters.values()
    by_position = [parameter for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
    if len(given) > len(by_position):
        raise InputError(
            f"{policy.__name__} takes {' and '.join(p.name for p in by_position)} by position and all settings by "
            f"name, got {shown(given[len(by_position)])} too; write for example horizon=1000"
        )
    known = known_settings(policy)
    unknown = [name for name in settings if name not in known]
    if unknown:
        kind, valid = policy.__name__, ", ".join(sorted(known))
        lines = [f"{kind} has no setting {name!r}; {did_you_mean(name, known)}known: {valid}" for name in unknown]
        raise InputError("\n".join(lines))


@functools.cache
def known_settings(policy: type) -> frozenset[str]:
    """Names of all settings of a class, its own and those it hands on, and `arms`."""
    return frozenset(signature_of(policy).parameters)


def own_settings(policy: object) -> dict[str, Any]:
    """The settings that not every policy has, as the attributes of the same names that its constructor has set."""
    kind = type(policy)
    names = [name for name in inspect.signature(kind).parameters if name not in ("arms", *COMMON_SETTINGS)]
    for name in names:
        if not hasattr(policy, name):
            raise InputError(
                f"{kind.__name__} has a setting {name!r} but no attribute of that name, so it cannot be saved; keep it "
                f"as self.{name} in __init__, or write _settings"
            )
    return {name: getattr(policy, name) for name in names}


def signature_of(policy: type) -> inspect.Signature:
    """The constructor as a user calls it: `arms`, the settings of the class, and those it hands on to its bases.

    A constructor that takes `**settings` hands them on to the next one, so what may be passed stands in several places;
    help and editors want it in one. The first constructor may take more than the arms by position; in those after it,
    such parameters are how bases are told of their parts.
    """
    found: dict[str, inspect.Parameter] = {}
    for kind in policy.__mro__:
        if "__init__" not in vars(kind) or kind is object:
            continue
        _, *parameters = inspect.signature(vars(kind)["__init__"]).parameters.values()
        first = not found
        for parameter in parameters:
            named = parameter.kind is parameter.KEYWORD_ONLY
            if named or (first and parameter.kind is parameter.POSITIONAL_OR_KEYWORD):
                found.setdefault(parameter.name, parameter)
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            break
    ordered = sorted(found.values(), key=lambda parameter: parameter.kind)
    return inspect.Signature(ordered)
