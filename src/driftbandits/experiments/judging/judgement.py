"""What a judge of a group gives: words to read, files to write, verdicts and claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from driftbandits.experiments.judging.checks import Claim
from driftbandits.experiments.judging.verdicts import TargetVerdict


@dataclass(frozen=True, eq=False, kw_only=True)  # tables have no single truth value to compare by
class Judgement:
    """What became of the targets and claims of a group; a judgement of one's own derives from it and has more fields.

    Parameters
    ----------
    verdicts : on targets
    claims : that were checked

    >>> @dataclass(frozen=True, eq=False)
    ... class Least(Judgement):
    ...     regret: float
    ...
    ...     def markdown(self) -> str:
    ...         return f"The least regret is {self.regret:.1f}."
    >>> Least(3.14159).markdown(), Least(3.14159).verdicts
    ('The least regret is 3.1.', ())
    """

    verdicts: tuple[TargetVerdict, ...] = ()
    claims: tuple[Claim, ...] = ()

    def markdown(self) -> str:
        """What a reader is told, as Markdown; empty where there is nothing to tell.

        Returns
        -------
        str
        """
        return ""

    @property
    def files(self) -> Mapping[str, str]:
        """Texts to write, by the name of the file; empty ones are not written."""
        return {}
