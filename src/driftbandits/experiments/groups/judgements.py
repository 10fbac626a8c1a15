"""Everything that is to be said of results: every group's judgement, each computed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from driftbandits.experiments.groups import GROUPS
from driftbandits.experiments.judging.checks import Claim
from driftbandits.experiments.judging.judgement import Judgement
from driftbandits.experiments.judging.results import Results
from driftbandits.experiments.judging.verdicts import TargetVerdict

Kind = TypeVar("Kind", bound=Judgement)


@dataclass(frozen=True)
class Judgements:
    """The judgements of all groups of which anything was played: what `judge` gives back.

    Parameters
    ----------
    each : in the order of the groups

    >>> Judgements().verdicts, Judgements().markdown()
    ((), '')
    """

    each: tuple[Judgement, ...] = ()

    def of(self, kind: type[Kind]) -> Kind | None:
        """The judgement of a kind, if there is one.

        Parameters
        ----------
        kind : a class derived from `Judgement`

        Returns
        -------
        Judgement, or None
        """
        return next((judgement for judgement in self.each if isinstance(judgement, kind)), None)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """All claims that were checked; those that nothing was played for are "not run"."""
        return tuple(claim for judgement in self.each for claim in judgement.claims)

    @property
    def verdicts(self) -> tuple[TargetVerdict, ...]:
        """Verdicts on all targets."""
        return tuple(verdict for judgement in self.each for verdict in judgement.verdicts)

    @property
    def files(self) -> Mapping[str, str]:
        """Texts to write, by the name of the file."""
        return {name: text for judgement in self.each for name, text in judgement.files.items() if text}

    def markdown(self) -> str:
        """All of it to read, one judgement after the other.

        Returns
        -------
        str
        """
        return "\n".join(text for judgement in self.each if (text := judgement.markdown()))


def judge(results: Results) -> Judgements:
    """Judge results: the paper's claims, and the targets of every group.

    Parameters
    ----------
    results : what `play` gave

    Returns
    -------
    Judgements

    >>> from driftbandits.experiments.judging.results import collect
    >>> judge(collect([], []))
    Judgements(each=())
    """
    judges = dict.fromkeys(group.judge for group in GROUPS if group.judge is not None)
    given = [judgement(results) for judgement in judges]
    return Judgements(tuple(judgement for judgement in given if judgement is not None))
