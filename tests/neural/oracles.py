"""The network a second time, written from its formulas: on torch with autograd, and on plain NumPy."""

import math

import numpy as np
import torch

from driftbandits.neural import Network
from driftbandits.neural.network import NumpyArrays


def double_network(*, depth, width=12, dimension=3, seed=0, symmetric=False):
    """A network small and precise enough to be compared digit by digit."""
    arrays = NumpyArrays(np.float64)
    return Network.initial(dimension=dimension, width=width, depth=depth, seed=seed, symmetric=symmetric, arrays=arrays)


def sphere_points(size, dimension=3, seed=0):
    points = np.random.default_rng(seed).standard_normal((size, dimension))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def host_weights(network):
    return [np.array(network.arrays.give(w)) for w in network.weights]


def flat(weights):
    return np.concatenate([np.asarray(w, dtype=np.float64).ravel() for w in weights])


def unflat(vector, weights):
    ends = np.cumsum([w.size for w in weights])[:-1]
    return [part.reshape(w.shape) for part, w in zip(np.split(vector, ends), weights, strict=True)]


def plain_outputs(weights, points):
    h = np.asarray(points, dtype=np.float64)
    for w in weights[:-1]:
        h = np.maximum(h @ w.astype(np.float64).T, 0.0)
    return math.sqrt(weights[-1].shape[1]) * (h @ weights[-1].astype(np.float64).T)[:, 0]


def plain_loss(weights, start, points, counts, means, weight_decay):
    """1/2 sum n (f - y)^2 + m lambda / 2 ||W - W0||^2."""
    misfit = 0.5 * np.sum(counts * np.square(plain_outputs(weights, points) - means))
    return misfit + 0.5 * weights[-1].shape[1] * weight_decay * np.sum(np.square(flat(weights) - flat(start)))


def central_differences(function, vector, step=1e-6):
    """Derivatives of `function`, whose value may be an array, along each entry; they come last."""
    moves = np.eye(len(vector)) * step
    return np.stack([(function(vector + move) - function(vector - move)) / (2 * step) for move in moves], axis=-1)


def torch_weights(weights):
    return [torch.tensor(np.asarray(w), dtype=torch.float64, requires_grad=True) for w in weights]


def torch_outputs(weights, points):
    h = torch.as_tensor(np.asarray(points), dtype=torch.float64)
    for w in weights[:-1]:
        h = torch.relu(h @ w.T)
    return math.sqrt(weights[-1].shape[1]) * (h @ weights[-1].T)[:, 0]


def torch_jacobian(network, points):
    """Gradients of f, one row per point, shape (N, p)."""
    weights = torch_weights(host_weights(network))
    outputs = torch_outputs(weights, points)
    rows = [torch.autograd.grad(output, weights, retain_graph=True) for output in outputs]
    return np.stack([flat([part.numpy() for part in row]) for row in rows])


def torch_descent(network, points, arms, rewards, *, steps, rate, weight_decay):
    """Gradient descent on the loss over rounds: `arms` and `rewards` as they came."""
    start = [torch.tensor(w, dtype=torch.float64) for w in host_weights(network)]
    weights = torch_weights(host_weights(network))
    told = torch.as_tensor(rewards, dtype=torch.float64)
    for _ in range(steps):
        misfit = 0.5 * torch.sum((torch_outputs(weights, points[arms]) - told) ** 2)
        moved = sum(torch.sum((w - w0) ** 2) for w, w0 in zip(weights, start, strict=True))
        loss = misfit + 0.5 * network.width * weight_decay * moved
        slopes = torch.autograd.grad(loss, weights)
        weights = [(w - rate * slope).detach().requires_grad_() for w, slope in zip(weights, slopes, strict=True)]
    return [w.detach().numpy() for w in weights]
