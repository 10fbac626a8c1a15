"""Plots: `beliefs` draws what a policy believes; the other files are those behind the figures of reports.

`data` computes the small table behind a plot, `palette` gives policies their line styles, `figures` draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftbandits.errors import InputError, MissingExtraError
from driftbandits.policies import Policy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def beliefs(policy: Policy, *, coloured: int = 6) -> Figure:
    """What `policy` believed over time: one line per arm with its 95 % band, and the changes it found.

    Some arms have colours and their names at the right; the rest of `policy.history` is grey. Dotted lines mark where
    changes began, shades how long they went unseen. A notebook shows the figure; `.savefig("beliefs.png")` writes it.

    Parameters
    ----------
    policy : any policy
    coloured : how many arms have colours, at most 8: those it plays most, and now

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    InputError
        For something that is no policy.
    MissingExtraError
        Without matplotlib, which the extra `experiments` brings.

    >>> from driftbandits import ArmSet, AutoBandit
    >>> policy = AutoBandit(ArmSet([[0.0], [0.5], [1.0]]), seed=0)
    >>> for _ in range(50):
    ...     policy.tell(policy.ask(), 0.5)
    >>> beliefs(policy).axes[0].get_title(loc="left")
    'AutoBandit: 50 rounds, 0 changes found'
    """
    if not isinstance(policy, Policy):
        raise InputError(f"beliefs wants a policy, got {type(policy).__name__}")
    try:
        from driftbandits.plots.belief_lines import belief_lines, draw_beliefs
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise MissingExtraError("matplotlib", extra="experiments", purpose="a figure") from None
    return draw_beliefs(belief_lines(policy, coloured=coloured))
