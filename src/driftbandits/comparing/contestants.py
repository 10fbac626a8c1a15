"""The policies of a comparison, from what a user gives: classes, names, references, with settings or without."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from driftbandits.comparing.cells import Contestant
from driftbandits.comparing.entries import Entry, check_distinct, entries, label_of, name_of
from driftbandits.configuration.presets import plain_settings
from driftbandits.configuration.references import is_reference, resolve
from driftbandits.errors import InputError, did_you_mean
from driftbandits.experiments.definitions.specs import NOT_POLICY_SETTINGS
from driftbandits.experiments.running.preflight import load_maker
from driftbandits.policies import POLICIES, Policy
from driftbandits.showing import shown


def read_policies(given: Any) -> tuple[Contestant, ...]:
    """The policies that an argument of `compare` means. Raises InputError with the cure for what cannot be one."""
    found = tuple(_contestant(entry) for entry in entries(given, "policy"))
    check_distinct([one.label for one in found], "policy")
    return found


def _contestant(entry: Entry) -> Contestant:
    for name, reason in NOT_POLICY_SETTINGS.items():
        if name in entry.settings:
            raise InputError(f"a policy cannot be given {name!r} here: {reason}")
    if isinstance(entry.what, str):
        return _named(entry, entry.what)
    if isinstance(entry.what, Policy):
        kind = type(entry.what).__name__
        raise InputError(f"give the class, not a {kind} that is built already: write {kind}, or ({kind}, {{...}})")
    if not callable(entry.what) or (isinstance(entry.what, type) and not issubclass(entry.what, Policy)):
        raise InputError(
            f"a policy is a class derived from driftbandits.Policy, a registered name or 'file.py:Class', alone or "
            f"with a mapping of its settings; got {shown(entry.what)}"
        )
    label = label_of(entry, "policy", partial(_own_label, entry.what))
    return Contestant(label, entry.what, dict(entry.settings))


def _own_label(maker: Callable[..., Any]) -> Any:
    """What a class of policies says of itself, or the name of a function."""
    return maker.label if isinstance(maker, type) and issubclass(maker, Policy) else name_of(maker, "policy")


def _named(entry: Entry, text: str) -> Contestant:
    name = resolve(text)
    if is_reference(name):
        maker = load_maker(f"policy {text!r}", name)
    elif name in POLICIES:
        maker = POLICIES[name]
    else:
        hint = did_you_mean(name, POLICIES, cutoff=0.4)
        raise InputError(f"no policy is called {name!r}; {hint}known: {', '.join(POLICIES)}")
    return Contestant(label_of(entry, "policy", partial(_own_label, maker)), name, plain_settings(entry.settings))
