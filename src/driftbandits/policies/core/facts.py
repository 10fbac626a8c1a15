"""What tables, figures, searches and timetables know of a policy: every class says it of itself, once."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar


class Family(StrEnum):
    """Families of policies, in the order in which legends list them."""

    NOTHING_TO_SET = "nothing to set"
    OPTIMISATION = "optimisation (OPKB)"
    NEURAL = "neural"
    GAUSSIAN_PROCESS = "Gaussian process"
    WRAPPER = "wrappers (MASTER, BOB)"
    LINEAR = "linear"
    PLAIN = "plain, no features"
    OTHER = "other"


class PolicyFacts:
    """Facts of a class of policies. A subclass inherits them, but for its name, its colour and whose it is.

    >>> from driftbandits import SlidingWindowGPUCB
    >>> SlidingWindowGPUCB.label, str(SlidingWindowGPUCB.family), SlidingWindowGPUCB.reports_changes
    ('SW-GPUCB', 'Gaussian process', False)
    """

    label: ClassVar[str] = "Policy"  # in tables and figures: its authors' name for it, by default that of the class
    colour: ClassVar[str | None] = None  # of its line in every figure; None: one that is free
    of_the_paper: ClassVar[bool] = False  # whether it is one of the paper's own algorithms
    family: ClassVar[str] = Family.OTHER
    reports_changes: ClassVar[bool] = False
    behaviour: ClassVar[int] = 1  # one more where it plays differently than before with the same settings
    # What a run takes on one core, measured with 100 arms while other processes were busy: once, and per round. With
    # more arms it grows like this power of their number.
    seconds_per_run: ClassVar[float] = 0.0
    microseconds_per_round: ClassVar[float] = 40.0
    arms_power: ClassVar[float] = 0.25

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Two classes never share a name or a colour because one derives from the other."""
        super().__init_subclass__(**keywords)
        for name, fact in {"label": cls.__name__, "colour": None, "of_the_paper": False}.items():
            if name not in vars(cls):
                setattr(cls, name, fact)

    @classmethod
    def trains(cls, settings: Mapping[str, Any]) -> bool:
        """Whether a policy with these settings trains a network, and so takes long.

        Parameters
        ----------
        settings : those of the class, by name

        Returns
        -------
        bool
        """
        del settings
        return False

    @classmethod
    def seconds(cls, rounds: float, settings: Mapping[str, Any]) -> float:
        """Roughly what a run with 100 arms takes on one core; a guess, which may be off by a factor of two.

        Parameters
        ----------
        rounds : of the run
        settings : those of the class, by name

        Returns
        -------
        float
            Seconds.
        """
        del settings
        return cls.seconds_per_run + 1e-6 * cls.microseconds_per_round * rounds
