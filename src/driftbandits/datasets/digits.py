"""Which learning rate now? Forty-two online classifiers of digit images whose world changes, all run at once.

Source: the digits bundled with scikit-learn (1,797 images of 8 x 8 pixels, the test set of UCI's "Optical Recognition
of Handwritten Digits"). Nothing has to be installed.

- Arm: a learning rate (seven, 0.003 to 10) and a decay of the weights (six, 0.0001 to 0.3) of softmax regression
  trained by gradient steps.
- Round: one batch of 32 images, drawn with replacement under a fixed seed.
- Reward: the share of the batch that the arm's classifier names correctly before it learns from it. All 42 classifiers
  see every batch whoever is played, so every counterfactual is known and the table is the observation: no noise is
  added. The noise of a batch is common to the arms.
- Change: every 350 rounds, in turn: images as they are; "churn", their pixels permuted anew every 25 rounds; images
  under pixel noise; images turned by 90 degrees; churn; noise; as they are; churn.
- Kernel: a constant plus a Gaussian in the logarithms of both, each scaled to [0, 1], half and half, length scale 0.3.

A fast learner without decay is best on clean images, one with strong decay under churn, a slow one under noise.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from sklearn.datasets import load_digits
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from driftbandits._util.seeding import stream
from driftbandits.arms.arm_set import ArmSet
from driftbandits.datasets.series import Panel, from_table
from driftbandits.types import Floats, Ints

RATES = np.logspace(-2.5, 1.0, 7)
DECAYS = np.logspace(-4.0, -0.5, 6)
PHASES = ("upright", "churn", "noisy", "turned", "churn", "noisy", "upright", "churn")
PHASE_ROUNDS = 350
_BATCH = 32
_ROUNDS_PER_PERMUTATION = 25
_PIXEL_NOISE = 1.0  # standard deviation, in units of a pixel's range
_SEED = 0
_CLASSES = 10


@lru_cache(maxsize=1)
def load() -> Panel:
    """Run all classifiers over the stream (about two seconds, once)."""
    rates, decays = (grid.ravel() for grid in np.meshgrid(RATES, DECAYS, indexing="ij"))
    logarithms = np.log10(np.stack([rates, decays], axis=1))
    points = (logarithms - logarithms.min(axis=0)) / np.ptp(logarithms, axis=0)
    names = [f"rate {rate:.2g}, decay {decay:.2g}" for rate, decay in zip(rates, decays, strict=True)]
    return Panel(
        name="digits",
        arms=ArmSet(points, kernel=ConstantKernel(0.5) + ConstantKernel(0.5) * RBF(0.3), names=names),
        cells=from_table(_accuracies(rates, decays)),
        reward_range=(0.0, 1.0),
        block=10,
        smoothing=10,
        changes=tuple(range(PHASE_ROUNDS, PHASE_ROUNDS * len(PHASES), PHASE_ROUNDS)),
    )


def _accuracies(rates: Floats, decays: Floats) -> Floats:
    """Share of each batch named correctly before learning from it, shape (rounds, configurations)."""
    size = len(rates)
    step = np.repeat(rates, _CLASSES)
    keep = np.maximum(1.0 - step * np.repeat(decays, _CLASSES), 0.0)
    images, labels = load_digits(return_X_y=True)
    batches = _Batches(images / 16.0, labels)
    weights = np.zeros((images.shape[1] + 1, size * _CLASSES))  # all configurations side by side: one product per round
    result = np.empty((PHASE_ROUNDS * len(PHASES), size))
    for now in range(len(result)):
        inputs, answers = batches.next(now)
        scores = (inputs @ weights).reshape(_BATCH, size, _CLASSES)
        result[now] = (scores.argmax(axis=2) == answers[:, None]).mean(axis=0)
        scores -= scores.max(axis=2, keepdims=True)
        errors = np.exp(scores)
        errors /= errors.sum(axis=2, keepdims=True)
        errors[np.arange(_BATCH), :, answers] -= 1.0
        weights *= keep
        weights -= step * (inputs.T @ errors.reshape(_BATCH, -1)) / _BATCH
    return result


class _Batches:
    """The stream of images: drawn in order of rounds, changed by the phase."""

    def __init__(self, images: Floats, labels: Ints) -> None:
        self._images, self._labels = images, labels
        self._middle = images.mean()
        self._draws = stream(_SEED, "digits", "batches")

    def next(self, now: int) -> tuple[Floats, Ints]:
        """Inputs (batch, pixels + 1), the last a constant 1, and labels (batch,)."""
        chosen = self._draws.integers(len(self._labels), size=_BATCH)
        images = self._changed(self._images[chosen], now) - self._middle
        return np.concatenate([images, np.ones((_BATCH, 1))], axis=1), self._labels[chosen]

    def _changed(self, images: Floats, now: int) -> Floats:
        phase = PHASES[now // PHASE_ROUNDS]
        if phase == "churn":
            order = stream(_SEED, "digits", "churn", now // _ROUNDS_PER_PERMUTATION).permutation(images.shape[1])
            return images[:, order]
        if phase == "noisy":
            return images + self._draws.normal(0.0, _PIXEL_NOISE, images.shape)
        if phase == "turned":
            return np.rot90(images.reshape(-1, 8, 8), axes=(1, 2)).reshape(images.shape)
        return images
