"""What the epoch so far says of rewards, in the two modes of `CalibratedOPKB`; both subtract the posterior mean."""

from __future__ import annotations

from driftbandits.policies.blocks.epoch import Epoch
from driftbandits.policies.calibrated.surrogate import Surrogate
from driftbandits.types import Floats


class PosteriorMean:
    """The mean of the Gaussian process believed in: exact where it is right."""

    subtracts = True

    def __init__(self, surrogate: Surrogate) -> None:
        self._surrogate = surrogate

    def rewards(self, epoch: Epoch) -> Floats:
        """Posterior mean of every arm's reward, shape (N,)."""
        return self._surrogate.mean()

    def baseline(self) -> Floats:
        """The same, when a law begins."""
        return self._surrogate.mean()


class ResidualIPS(PosteriorMean):
    """IPS of what the mean leaves unexplained: right on average whatever the process, as the analysis needs it."""

    def rewards(self, epoch: Epoch) -> Floats:
        """The estimate from all laws of the epoch; before the first, the mean alone."""
        return epoch.so_far() if epoch.blocks else self._surrogate.mean()
