"""A slow second implementation of the network: autograd in double precision, whole gradients, one row per round."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch

from driftbandits._util.seeding import stream
from tests.policies.opkb.slow import SlowAdaOPKB


def drawn(shape, variance, seed, layer):
    return stream(seed, "network", layer).standard_normal(shape, dtype=np.float32) * np.float32(math.sqrt(variance))


def initial(dimension, width, depth, seed, symmetric):
    """Entries N(0, 2 / m); `symmetric`: as in the NeuralUCB paper, section 3, but both halves see x itself."""
    if not symmetric:
        shapes = [(width, dimension)] + [(width, width)] * (depth - 2) + [(1, width)]
        return [drawn(shape, 2 / width, seed, layer) for layer, shape in enumerate(shapes)]
    half = width // 2
    first = drawn((half, dimension), 2 / width, seed, 0)
    inner = [drawn((half, half), 4 / width, seed, layer) for layer in range(1, depth - 1)]
    last = drawn((1, half), 2 / width, seed, depth - 1)
    return [np.concatenate([first, first]), *(np.kron(np.eye(2), W) for W in inner), np.hstack([last, -last])]


class SlowNetwork:
    """f(x; W) = sqrt(m) W_L relu(... relu(W_1 x)) on fixed points of length 1."""

    def __init__(self, points, *, width, depth=3, seed=0, symmetric=False):
        self.points = torch.tensor(points, dtype=torch.float64)
        self.width = width
        weights = initial(self.points.shape[1], width, depth, seed, symmetric)
        self.start = [torch.tensor(W, dtype=torch.float64) for W in weights]

    def f(self, weights, points):
        for W in weights[:-1]:
            points = torch.relu(points @ W.T)
        return math.sqrt(self.width) * (points @ weights[-1].T)[:, 0]

    def outputs(self, weights):
        return self.f(weights, self.points).numpy()

    def gradients(self, weights):
        """g(x; W) / sqrt(m), one row of p entries per point."""
        free = [W.clone().requires_grad_() for W in weights]
        rows = []
        for point in self.points:
            parts = torch.autograd.grad(self.f(free, point[None])[0], free)
            rows.append(torch.cat([part.ravel() for part in parts]).numpy() / math.sqrt(self.width))
        return np.array(rows)

    def gram(self, weights):
        G = self.gradients(weights)
        return G @ G.T

    def auto_rate(self, arms, decay):
        """1 / L for the curvature L = m (lambda + lambda_max(sum over rounds of g g' / m)) at W^(0)."""
        curvature = np.linalg.norm(self.gradients(self.start)[arms], 2) ** 2 if len(arms) else 0.0
        return 1.0 / (self.width * (decay + curvature))

    def trained(self, arms, rewards, *, steps, decay, rate="auto"):
        """TrainNN of the paper on a history of rounds."""
        eta = self.auto_rate(arms, decay) if rate == "auto" else rate
        weights = [W.clone() for W in self.start]
        seen, wanted = self.points[list(arms)], torch.tensor(rewards, dtype=torch.float64)
        for _ in range(steps):
            free = [W.requires_grad_() for W in weights]
            far = sum(((W - W0) ** 2).sum() for W, W0 in zip(free, self.start, strict=True))
            loss = ((self.f(free, seen) - wanted) ** 2).sum() / 2 + self.width * decay * far / 2
            with torch.no_grad():
                weights = [W - eta * g for W, g in zip(free, torch.autograd.grad(loss, free), strict=True)]
        return weights


@dataclass
class SlowAdaOPNN(SlowAdaOPKB):
    """ADA-OPNN by its box: phi^(j) is trained from W^(0) on C(j - 1) and judges every round of the epoch."""

    kernel: np.ndarray = field(init=False)
    network: SlowNetwork | None = None
    steps: int = 5
    decay: float = 1.0
    rate: float | str = "auto"
    law_tolerance: float = 2e-5  # the engine's network is in single precision
    tolerance: float = 1e-4
    moved: list[float] = field(default_factory=list)

    def __post_init__(self):
        self.first = self.normalised(self.network.start)
        self.kernel = self.first
        super().__post_init__()

    def normalised(self, weights):
        gram = self.network.gram(weights)
        return gram / gram.diagonal().max()

    def kernel_of(self, j):
        told = [row for row in self.rows if row.reward is not None]
        if j == 0 or not told:
            return self.kernel if self.variant.after_restart == "kept_features" else self.first
        weights = self.network.trained(
            [row.arm for row in told],
            [row.reward for row in told],
            steps=self.steps,
            decay=self.decay,
            rate=self.rate,
        )
        kernel = self.normalised(weights)
        self.moved.append(float(np.abs(kernel - self.first).max()))
        return kernel
