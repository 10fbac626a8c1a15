"""How likely rewards are under a kernel, a size of the signal and a noise, on a grid of both.

symbol     name              shape
K          Phi Phi'          (N, N), the kernel
kappa      SIGNAL_VARIANCES  prior variance of an arm's reward about the level
s^2        NOISE_VARIANCES   variance of the noise
           LEVEL_VARIANCE    prior variance of the level that all arms share
n, ybar    counts            (a,) how often each arm was seen, and its mean reward
G          D^1/2 Phi on the arms seen, D = diag(n)

The rewards of an arm say the same as their mean, which has variance s^2 / n, and what they scatter about it. With
z = D^1/2 ybar ~ N(0, kappa G G' + LEVEL_VARIANCE n^1/2 n^1/2' + s^2 I), one eigendecomposition of G'G gives the whole
grid.
"""

from __future__ import annotations

import numpy as np

from driftbandits.detection.ledger import Totals
from driftbandits.types import Floats

SIGNAL_VARIANCES: Floats = 0.25 ** np.arange(12.0)  # where rewards span [-1, 1]
SIGNALS_TRIED = 5  # 1 to 1/256, or as many from a smaller one on where rewards have two values
NOISE_VARIANCES: Floats = 1e-4 * 2.0 ** (np.arange(28) / 2)  # standard deviations of 0.01 to 1.1
LEVEL_VARIANCE = 1.0


def nearest_signal(variance: float) -> int:
    """Place of the first signal to be tried where arms should not be thought to differ by more than `variance`.

    >>> nearest_signal(1.0), nearest_signal(0.0036), nearest_signal(1e-30)
    (0, 4, 7)
    """
    last = len(SIGNAL_VARIANCES) - SIGNALS_TRIED
    return min(int(np.abs(np.log(SIGNAL_VARIANCES / variance)).argmin()), last)


def log_evidence(features: Floats, totals: Totals) -> Floats:
    """log p(rewards | kappa, s^2) for every pair, shape (signals, noises), up to a constant of the rewards alone."""
    seen = np.flatnonzero(totals.counts)
    if not len(seen):
        return np.zeros((len(SIGNAL_VARIANCES), len(NOISE_VARIANCES)))
    counts = totals.counts[seen]
    ones: Floats = np.sqrt(counts)
    means = totals.sums[seen] / counts
    scatter = max(float((totals.squares[seen] - counts * np.square(means)).sum()), 0.0)
    z, G = ones * means, ones[:, None] * features[seen]
    values, vectors = np.linalg.eigh(G.T @ G)
    values = np.maximum(values, 0.0)
    z_, ones_ = vectors.T @ (G.T @ z), vectors.T @ (G.T @ ones)
    signal, noise = SIGNAL_VARIANCES[:, None, None], NOISE_VARIANCES[None, :, None]
    shrink = signal / (noise + signal * values)  # (signals, noises, r)

    def product(one: Floats, other: Floats, inner: float) -> Floats:
        """one' (kappa G G' + s^2 I)^-1 other, given both by the eigenvectors, and their inner product."""
        return np.asarray((inner - shrink @ (one * other)) / NOISE_VARIANCES)

    level = 1.0 + LEVEL_VARIANCE * product(ones_, ones_, float(ones @ ones))
    fit = product(z_, z_, float(z @ z)) - LEVEL_VARIANCE * np.square(product(z_, ones_, float(z @ ones))) / level
    log_det = counts.sum() * np.log(NOISE_VARIANCES) + np.log1p(signal * values / noise).sum(axis=2) + np.log(level)
    return np.asarray(-0.5 * (log_det + fit + scatter / NOISE_VARIANCES))
