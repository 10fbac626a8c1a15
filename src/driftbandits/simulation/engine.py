"""Play a policy in a world."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from driftbandits.blas_threads import one_blas_thread
from driftbandits.checks import check_count
from driftbandits.environments import Environment, uniforms
from driftbandits.environments.base import LARGEST_TABLE
from driftbandits.errors import HorizonError, InputError
from driftbandits.policies import Policy
from driftbandits.seeding import check_seed
from driftbandits.showing import counted
from driftbandits.simulation.trace import Trace
from driftbandits.types import Decision, Decisions, Floats

_LONGEST_STRETCH = 65_536  # rounds asked at once, so that memory stays bounded whatever the policy's stretches
_SINGLE_ROUNDS = 64  # before looking again whether the policy is sure of more


@one_blas_thread
def simulate(
    policy: Policy,
    world: Environment,
    *,
    seed: int = 0,
    rounds: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Trace:
    """Let `policy` play `world`, telling every reward at once, and keep what happened.

    The policy is asked for as many rounds as its law is certain to stay, so thousands of rounds cost one call; the
    result is the same, decision for decision, as asking round by round. A policy that has already played goes on at
    the world's round number `policy.rounds`. In a world that does not always offer every arm the policy is asked round
    by round for one of those offered.

    Parameters
    ----------
    policy, world : over equally many arms; the policy's reward range must hold the world's rewards unless it clips
    seed : of the noise; the same seed gives every policy the same noise in the same round
    rounds : how many to play, by default to the world's end
    progress : called with the number of rounds after every stretch

    Returns
    -------
    Trace

    Raises
    ------
    InputError
        If policy and world do not fit: other numbers of arms, or rewards that may leave the policy's range.
    HorizonError
        For more rounds than the world, or the policy, has.

    >>> import driftbandits as db
    >>> world = db.environments.create("switching/1", seed=0, horizon=500, switches=(250,))
    >>> trace = db.simulate(db.OPKB(world.arms, horizon=500, seed=0), world, seed=0)
    >>> len(trace), bool(trace.regret.min() >= 0)
    (500, True)
    """
    if not isinstance(policy, Policy) or not isinstance(world, Environment):
        raise InputError(f"simulate wants a policy and a world, got {type(policy).__name__} and {type(world).__name__}")
    seed = check_seed(seed)
    start = policy.rounds
    stop = world.horizon if rounds is None else start + check_count("rounds", rounds)
    _check_match(policy, world, start, stop)
    changes_before = policy.changes_found
    begun = time.perf_counter()
    batches: list[Decisions] = []
    rewards: list[Floats] = []
    now = start
    masked = world.allowed(start) is not None
    while now < stop:
        steady = 1 if masked else policy.steady_rounds()
        if steady == 1:
            count = min(stop - now, _SINGLE_ROUNDS, max(LARGEST_TABLE // len(world.arms), 1))
            batch, told = _single_rounds(policy, world, seed, now, count)
        else:
            batch = policy.ask(size=min(stop - now, steady, _LONGEST_STRETCH))
            told = world.rewards(now, batch.arms, seed)
            policy.tell(batch.ids, told)
        batches.append(batch)
        rewards.append(told)
        now += len(batch)
        if progress is not None:
            progress(len(batch))
    arms = np.concatenate([batch.arms for batch in batches])
    found = policy.changes_found - changes_before
    return Trace(
        start=start,
        arm=arms.astype(np.int32),
        reward=np.concatenate(rewards),
        regret=world.best(start, len(arms)) - world.means_of(start, arms),
        probability=np.concatenate([batch.probabilities for batch in batches]),
        law=np.concatenate([batch.laws for batch in batches]),
        changes=policy.changes[-found:] if found else (),
        seconds=time.perf_counter() - begun,
        policy=repr(policy),
        world=repr(world),
        seed=seed,
    )


def _single_rounds(policy: Policy, world: Environment, seed: int, start: int, count: int) -> tuple[Decisions, Floats]:
    """Ask and tell `count` rounds one at a time, in plain numbers; the world's part is looked up beforehand."""
    choices: list[Decision] = []
    rewards: list[float] = []
    means, masks, draws = world.means(start, count), world.allowed(start, count), uniforms(seed, start, count)
    numbers = np.arange(len(world.arms))
    for place in range(count):
        choice = policy.ask() if masks is None else policy.ask(allowed=masks[place])
        here, arm = slice(place, place + 1), choice.arm
        reward = world.observe(start + place, numbers[arm : arm + 1], means[here, arm], draws[here]).item()
        policy.tell(choice.id, reward)
        choices.append(choice)
        rewards.append(reward)
    columns = Decisions(
        ids=np.array([choice.id for choice in choices]),
        arms=np.array([choice.arm for choice in choices]),
        probabilities=np.array([choice.probability for choice in choices]),
        laws=np.array([choice.law for choice in choices]),
    )
    return columns, np.array(rewards)


def _check_match(policy: Policy, world: Environment, start: int, stop: int) -> None:
    if len(policy.arms) != len(world.arms):
        raise InputError(
            f"the policy has {counted(len(policy.arms), 'arm')} and the world {len(world.arms)}; build both on the same"
        )
    if not start < stop <= world.horizon:
        raise InputError(
            f"the policy stands at round {start} and {stop - start} more are wanted, the world has {world.horizon}; "
            f"build a fresh policy, or a longer world"
        )
    if policy.horizon is not None and policy.horizon < stop:
        raise HorizonError(
            f"the policy ends after {counted(policy.horizon, 'round')} and {stop} are wanted; build it with "
            f"horizon={stop} or None"
        )
    (low, high), (least, most) = policy.reward_range, world.reward_range
    if policy.out_of_range == "error" and (least < low or most > high):
        raise InputError(
            f"rewards of this world lie in ({least:g}, {most:g}), outside the policy's ({low:g}, {high:g}); "
            f"declare that range, pass out_of_range='clip', or use a bounded noise such as TruncatedGaussianNoise"
        )
