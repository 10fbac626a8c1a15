"""Completion of names in the shell; each is imported only when asked for."""

from __future__ import annotations

from collections.abc import Iterable


def experiments(incomplete: str) -> list[str]:
    """Groups and ids of experiments."""
    from driftbandits.experiments.study import load_study, study_folder

    if study_folder() is None:
        return []
    groups = load_study("groups", purpose="completion")
    return _beginning(incomplete, [*(group.name for group in groups.GROUPS), *groups.EXPERIMENTS])


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
    from driftbandits.experiments.engines import ENGINES

    return _beginning(incomplete, ENGINES)


def searches(incomplete: str) -> list[str]:
    """What can be searched: the studies, and policies one by one."""
    from driftbandits.cli.tune import STUDIES
    from driftbandits.policies import POLICIES

    return _beginning(incomplete, [*STUDIES, *POLICIES])


def labels(incomplete: str) -> list[str]:
    """Policies of the comparison."""
    from driftbandits.experiments.study import load_study, study_folder

    return [] if study_folder() is None else _beginning(incomplete, load_study("spaces", purpose="completion").SPACES)


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
