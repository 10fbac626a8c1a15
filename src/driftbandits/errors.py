"""The one exception tree. A message says what was wrong, which value was given, and the cure.

DriftbanditsError
|-- InputError            a value the caller passed is not usable (also a ValueError)
|   |-- KernelError       the kernel is not positive semi-definite, or not finite
|   |-- RewardError       a reward is not finite or outside the declared range
|   `-- StateError        a saved state does not fit the policy or the arms
|-- UnknownDecisionError  an id that was never given out, or is already told or forgotten
|-- HorizonError          more rounds asked for than the policy was built for
|-- LawError              a policy declared a law that is no probability vector
|-- InterruptedPolicyError  an exception left the policy half changed; a saved state is to be loaded
|-- ReentryError          a policy called from inside one of its own calls, by a signal handler say
|-- ConvergenceError      a solver stopped short; carries the best iterate as `best`
|-- LiveError             an experiment in a database cannot do what was asked
|   |-- UnknownExperimentError  no experiment of that name is in the database (also a KeyError)
|   |-- ExperimentExistsError   there is one of that name already
|   |-- OtherDeciderError       another process decides in this experiment
|   |-- NotStoredError          not known whether a request was stored; to be sent again with the same key
|   |-- ConflictError           a key or a decision was used before with something else, or is in use
|   |   `-- KeyReusedError      an idempotency key came with another request than before
|   |-- AwayError               a service does not answer; whether it did what was asked is not known
|   |-- GoneError               what was asked for was deleted by retention
|   |-- JournalError            a journal, or a snapshot, is damaged
|   `-- SchemaError             the database has another schema than this version reads
|-- MissingExtraError     an optional dependency is not installed (also an ImportError)
`-- MissingDataError      the package that brings a data set is not installed (also an ImportError)

ConvergenceWarning (a UserWarning) says that a policy went on with a law short of its tolerance, RewardRangeWarning that
the rewards told fill next to nothing of the declared range, its kind ClippedRewardsWarning that rewards were cut,
ZeroOneRewardsWarning that they are 0 or 1 in the range (-1, 1), DelayWarning that how late rewards come depends on what
they are, HeldRewardsWarning that many rewards wait for one decision that is open, LateRewardsWarning that many come
after their decision was closed as missing, DoubtWarning that what a policy believes does not fit the rewards.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class DriftbanditsError(Exception):
    """Root of every error this library raises on purpose.

    >>> issubclass(InputError, DriftbanditsError), issubclass(InputError, ValueError)
    (True, True)
    """


class InputError(DriftbanditsError, ValueError):
    """A value the caller passed is not usable. The message names the value and the cure.

    >>> from driftbandits import ArmSet
    >>> ArmSet([[1.0], [2.0]], names="ab")
    Traceback (most recent call last):
    ...
    driftbandits.errors.InputError: ...
    """


class KernelError(InputError):
    """The kernel is not positive semi-definite, or gives values that are not finite.

    >>> from driftbandits import ArmSet
    >>> ArmSet([[0.0], [1.0]], kernel=[[1.0, 2.0], [2.0, 1.0]])
    Traceback (most recent call last):
    ...
    driftbandits.errors.KernelError: ...
    """


class RewardError(InputError):
    """A reward is not finite or lies outside the declared range. Nothing of the call was learned.

    >>> from driftbandits import ArmSet, Uniform
    >>> policy = Uniform(ArmSet([[0.0], [1.0]]), reward_range=(0, 1))
    >>> policy.tell(policy.ask(), 49.9)
    Traceback (most recent call last):
    ...
    driftbandits.errors.RewardError: reward 49.9 lies outside reward_range=(0, 1); ...
    """


class StateError(InputError):
    """A saved state does not fit the policy, the arms or this version of the library.

    >>> from driftbandits import ArmSet, Uniform
    >>> state = Uniform(ArmSet([[0.0], [1.0]])).state_dict()
    >>> Uniform.restore(ArmSet([[0.0], [2.0]]), state)
    Traceback (most recent call last):
    ...
    driftbandits.errors.StateError: ...
    """


class UnknownDecisionError(DriftbanditsError, KeyError):
    """A decision id that was never given out, or whose reward is already told or forgotten.

    >>> from driftbandits import ArmSet, Uniform
    >>> Uniform(ArmSet([[0.0], [1.0]])).tell(7, 0.5)
    Traceback (most recent call last):
    ...
    driftbandits.errors.UnknownDecisionError: ...
    """

    def __str__(self) -> str:  # KeyError would show the repr of the message
        return str(self.args[0]) if self.args else ""


class HorizonError(DriftbanditsError):
    """More rounds were asked for than the policy was built for.

    >>> from driftbandits import ArmSet, Uniform
    >>> Uniform(ArmSet([[0.0], [1.0]]), horizon=10).ask(size=11)
    Traceback (most recent call last):
    ...
    driftbandits.errors.HorizonError: ...
    """


class LawError(DriftbanditsError):
    """A policy declared a law that is no probability vector over its arms."""


class InterruptedPolicyError(DriftbanditsError):
    """An exception in the middle of a change left the policy half changed; it refuses to go on or to be saved."""


class ReentryError(DriftbanditsError):
    """A policy was called from inside one of its own calls, which only a signal handler or one of its hooks can do."""


class ConvergenceError(DriftbanditsError):
    """A solver stopped before its tolerance.

    Parameters
    ----------
    message : why
    best : the best feasible result it had, kept as an attribute

    >>> ConvergenceError("stalled", best="the best law").best
    'the best law'
    """

    def __init__(self, message: str, *, best: Any) -> None:
        super().__init__(message)
        self.best = best

    def __reduce__(
        self,
    ) -> tuple[Any, ...]:  # the default forgets keyword arguments, and worker processes pickle errors
        return _rebuild_convergence_error, (self.args[0], self.best)


def _rebuild_convergence_error(message: str, best: Any) -> ConvergenceError:
    return ConvergenceError(message, best=best)


class ConvergenceWarning(UserWarning):
    """A policy went on with a law whose certified gap is above the tolerance."""


class RewardRangeWarning(UserWarning):
    """The rewards told fill so little of the declared range that a policy can hardly tell them apart."""


class ClippedRewardsWarning(RewardRangeWarning):
    """Rewards outside the declared range were moved to its ends, by so much that estimates are of other rewards."""


class ZeroOneRewardsWarning(UserWarning):
    """All rewards told are 0 or 1, and the declared range is the default (-1, 1): it ought to be (0, 1)."""


class DelayWarning(UserWarning):
    """How late rewards come depends on what they are, so that the order told misleads a policy."""


class HeldRewardsWarning(UserWarning):
    """Many rewards wait for an earlier decision whose reward has not come, and are not learned."""


class LateRewardsWarning(UserWarning):
    """Many rewards come after their decision was closed as missing, and are not learned: patience is too short."""


class DoubtWarning(UserWarning):
    """What a policy believes of its arms does not fit the rewards it was told, so its estimates cannot be trusted."""


class LiveError(DriftbanditsError):
    """An experiment in a database cannot do what was asked."""


class UnknownExperimentError(LiveError, KeyError):
    """No experiment of that name is in the database."""

    def __str__(self) -> str:  # KeyError would show the repr of the message
        return str(self.args[0]) if self.args else ""


class ExperimentExistsError(LiveError):
    """There is an experiment of that name already."""


class OtherDeciderError(LiveError):
    """Another process, or another object in this one, decides in this experiment; `address` says where, if known."""

    address: str | None = None


class NotStoredError(LiveError):
    """It is not known whether a request was stored; sent again with the same key, it is settled."""


class ConflictError(LiveError):
    """A key or a decision was used before with something else, or is in use now."""


class KeyReusedError(ConflictError):
    """An idempotency key came with another request than before."""


class AwayError(LiveError):
    """A service does not answer; whether it did what was asked is not known."""


class GoneError(LiveError):
    """What was asked for was deleted by retention."""


class JournalError(LiveError):
    """A journal, or a snapshot, is damaged."""


class SchemaError(LiveError):
    """The database has another schema than this version of the library reads."""


class MissingExtraError(DriftbanditsError, ImportError):
    """An optional dependency is not installed; the message has the line to install it.

    Parameters
    ----------
    package : that is missing
    extra : of this library, that brings it
    purpose : what needs it

    >>> print(MissingExtraError("pandas", extra="experiments", purpose="a table"))
    a table needs pandas; in a checkout of driftbandits, install it with: pip install '.[experiments]'
    """

    def __init__(self, package: str, *, extra: str, purpose: str) -> None:
        cure = f"in a checkout of driftbandits, install it with: pip install '.[{extra}]'"
        super().__init__(f"{purpose} needs {package}; {cure}")
        self._parts = (package, extra, purpose)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_missing_extra, self._parts


def _rebuild_missing_extra(package: str, extra: str, purpose: str) -> MissingExtraError:
    return MissingExtraError(package, extra=extra, purpose=purpose)


class MissingDataError(DriftbanditsError, ImportError):
    """The package that brings a data set is not installed."""


def did_you_mean(name: object, valid: Iterable[str], *, cutoff: float = 0.6) -> str:
    """The nearest valid name as part of a message.

    Parameters
    ----------
    name : that was given
    valid : names that there are
    cutoff : how near is near, from 0 to 1

    Returns
    -------
    str
        Empty where none is near.

    >>> did_you_mean("horizn", ["seed", "horizon"])
    "did you mean 'horizon'? "
    """
    near = difflib.get_close_matches(str(name), list(valid), n=1, cutoff=cutoff)
    return f"did you mean {near[0]!r}? " if near else ""


def near_and_valid(name: object, valid: Iterable[str]) -> str:
    """The nearest valid name, if one is near, and all valid names, as part of a message.

    Parameters
    ----------
    name : that was given
    valid : names that there are

    Returns
    -------
    str

    >>> near_and_valid("horizn", ["seed", "horizon"])
    "did you mean 'horizon'? valid: seed, horizon"
    """
    choices = list(valid)
    return f"{did_you_mean(name, choices)}valid: {', '.join(choices)}"
