"""`compare`: policies side by side in a few worlds, from a notebook or a script; heavy imports wait for the call."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from driftbandits.environments import Environment
from driftbandits.errors import MissingExtraError
from driftbandits.policies import Policy

if TYPE_CHECKING:
    from driftbandits.experiments.comparison import Comparison
    from driftbandits.experiments.stores import Store

__all__ = ["compare"]
OnePolicy = str | type[Policy] | Callable[..., Policy] | tuple[str | Callable[..., Policy], Mapping[str, Any]]
OneWorld = str | Environment | Callable[..., Environment] | tuple[str | Callable[..., Environment], Mapping[str, Any]]


def compare(
    policies: OnePolicy | Sequence[OnePolicy] | Mapping[str, OnePolicy],
    worlds: OneWorld | Sequence[OneWorld] | Mapping[str, OneWorld],
    *,
    seeds: int | Iterable[int] = 10,
    jobs: int = -1,
    show: bool | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    reference: str | None = None,
) -> Comparison:
    """Play every policy in every world on every seed, and give back tables and a figure.

    On one seed all policies meet the same world and the same noise, so differences are paired. Classes may be defined
    in the notebook. Before long runs begin, every policy is built and plays one round, so that mistakes show at once.

    Parameters
    ----------
    policies : one, a list, or a mapping from labels. Each is a class, a registered name or `file.py:Class`, or a pair
        of one of these and a mapping of its settings; the path of a file that `db.tune` wrote stands for all policies
        in it
    worlds : one, a list, or a mapping from labels. Each is an environment (the same on every seed; only noise and
        policy differ), the name of a registered world, of a real series ("real/...") or of an experiment (its world),
        `file.py:Class`, a class or function called with `seed`, or a pair of one of these and a mapping of its
        settings. A world has the same horizon on every seed
    seeds : how many, counted from 0, or which
    jobs : processes, never more than runs; -1: one per core, 1: all in this process
    show : whether to show progress on standard error; by default in a terminal and in a notebook
    store : where finished runs are kept, and taken from when the same is played again: a folder, or any Store. Policies
        and worlds are then given by name, `file.py:Class` or registered class: a key must say what was played
    reference : label of the policy that the others are compared with, such as your own: intervals then hold for all of
        them in a world at once (Bonferroni). By default each is compared with the best in that world

    Returns
    -------
    Comparison
        `print` it, take its DataFrames, or `plot()` it; in a notebook it shows itself.

    Raises
    ------
    InputError
        For what cannot be played.
    CellError
        For what fails on the way, with label, world, seed and the traceback of the run.
    MissingExtraError
        Without the extra `experiments`.

    >>> import driftbandits as db
    >>> world = db.environments.create("switching/1", seed=0, horizon=300, switches=(150,), size=10)
    >>> found = db.compare([db.Uniform, (db.GPUCB, {"beta": 1.0})], world, seeds=2, jobs=1)
    >>> found.summary[["world", "policy", "seeds"]].values.tolist()
    [['switching/1', 'Uniform', 2], ['switching/1', 'GPUCB (beta=1.0)', 2]]
    """
    try:
        import driftbandits.experiments.comparison  # noqa: F401  # what it gives back needs pandas
        from driftbandits.experiments.contestants import play, read_policies, read_worlds
        from driftbandits.experiments.engines import Engine
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), extra="experiments", purpose="compare") from None
    return play(
        read_policies(policies),
        read_worlds(worlds),
        seeds=seeds,
        engine=Engine(jobs=jobs),
        show=show,
        store=store,
        reference=reference,
    )
