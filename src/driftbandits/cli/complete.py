"""Completion of names in the shell; each is imported only when asked for."""

from __future__ import annotations

from collections.abc import Iterable


def experiments(incomplete: str) -> list[str]:
    """Groups and ids of experiments."""
    from driftbandits.experiments.groups import EXPERIMENTS, GROUPS

    return _beginning(incomplete, [*(group.name for group in GROUPS), *EXPERIMENTS])


def policies(incomplete: str) -> list[str]:
    """Names of registered policies."""
    from driftbandits.policies import POLICIES

    return _beginning(incomplete, POLICIES)


def environments(incomplete: str) -> list[str]:
    """Names of registered worlds."""
    from driftbandits import datasets, environments

    return _beginning(incomplete, [*environments.names(), *(f"real/{name}" for name in datasets.names())])


def engines(incomplete: str) -> list[str]:
    """Names of engines."""
    from driftbandits.experiments.running.engines import ENGINES

    return _beginning(incomplete, ENGINES)


def searches(incomplete: str) -> list[str]:
    """What can be searched: the studies, and policies one by one."""
    from driftbandits.cli.tune import STUDIES
    from driftbandits.policies import POLICIES

    return _beginning(incomplete, [*STUDIES, *POLICIES])


def labels(incomplete: str) -> list[str]:
    """Policies of the comparison."""
    from driftbandits.tuning.spaces import SPACES

    return _beginning(incomplete, SPACES)


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
