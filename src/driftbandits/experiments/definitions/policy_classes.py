"""The class behind a policy's name, for the facts that stand on it."""

from __future__ import annotations

from driftbandits.configuration.references import is_reference, load
from driftbandits.policies import POLICIES, Policy


def policy_class(name: str) -> type[Policy]:
    """The class called `name`, registered or a user's `file.py:Class`.

    `Policy`, of which nothing is known, where there is none to be had: a file may be gone or broken.

    >>> policy_class("SlidingWindowGPUCB").label, policy_class("gone.py:Mine").label
    ('SW-GPUCB', 'Policy')
    """
    if not is_reference(name):
        return POLICIES.get(name, Policy)
    try:
        found = load(name)
    except (Exception, SystemExit):  # noqa: BLE001  # whatever a user's file does; who plays it will be told
        return Policy
    return found if isinstance(found, type) and issubclass(found, Policy) else Policy
