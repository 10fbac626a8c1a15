"""Features for the block engine: fixed by a kernel, or those of a network trained from block to block."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.arms import ArmSet
from driftbandits.errors import StateError
from driftbandits.neural import ArmsSeen, NetworkModel
from driftbandits.neural.network import Network
from driftbandits.state.plausible import FARTHEST, check_sums, check_whole
from driftbandits.types import Floats, Ints

_LARGEST_SQUARED_LENGTH = 1e6  # of features that are not normalised, squared; usual is 1 per layer


class FixedFeatures:
    """Features of the arms' kernel, which never change."""

    def __init__(self, arms: ArmSet) -> None:
        self._arms = arms

    @property
    def first(self) -> Floats:
        """Those of the arms."""
        return self._arms.features

    @property
    def present(self) -> Floats:
        """The same."""
        return self._arms.features

    def begin(self) -> None:
        """They are there."""

    def forget(self, since: int | None) -> None:
        """Nothing was kept."""

    def observe(self, arms: Ints, rewards: Floats, rounds: Ints) -> None:
        """Rewards do not matter."""

    def observe_one(self, arm: int, reward: float, round_: int) -> None:
        """Rewards do not matter."""

    def prepare(self) -> None:
        """They are there."""

    def advance(self) -> bool:
        """Never."""
        return False

    def export(self) -> dict[str, Any]:
        """The arms have them."""
        return {}

    def load(self, state: states.Reader, *, rounds: int) -> None:
        """Nothing is stored."""

    def check(self, *, told: int, looked: bool, largest: float) -> None:
        """Nothing depends on rewards."""


class NetworkFeatures:
    """Tangent features of a network that (if it `trains`) is trained anew from W^(0) at the start of every block.

    The state stores features beside the trained weights: recomputed with another number of BLAS threads they could
    differ in the last bit.
    """

    def __init__(self, model: NetworkModel, *, trains: bool) -> None:
        self.model = model
        self.trains = trains
        self._saved: Floats | None = None
        self.begin()

    @property
    def first(self) -> Floats:
        """Features of W^(0), as computed here or as saved."""
        return self.model.initial.features if self._saved is None else self._saved

    @property
    def present(self) -> Floats:
        """Features of the network in use."""
        return self.first if self._present is None else self._present

    def begin(self) -> None:
        """Nothing is trained."""
        self.trainings = 0
        self.forget(None)

    def forget(self, since: int | None) -> None:
        """Back to W^(0)."""
        self.trained: Network | None = None
        self._present: Floats | None = None
        self._next: tuple[Network, Floats] | None = None
        self.seen = ArmsSeen.none(len(self.model.points))

    def observe(self, arms: Ints, rewards: Floats, rounds: Ints) -> None:
        """Add to the sums that training needs."""
        self.seen.add_many(arms, rewards)

    def observe_one(self, arm: int, reward: float, round_: int) -> None:
        """Add one."""
        self.seen.add(arm, reward)

    def prepare(self) -> None:
        """Train on the epoch so far, if anything of it was told."""
        if self.trains and self.seen.counts.any():
            network = self.model.train(self.seen).network
            self._next = network, self.model.view(network).features

    def advance(self) -> bool:
        """Take what was trained."""
        if self._next is None:
            return False
        (self.trained, self._present), self._next = self._next, None
        self.trainings += 1
        return True

    def export(self) -> dict[str, Any]:
        """Features, sums, and the trained weights; the initial ones follow from the seed."""
        weights = [] if self.trained is None else [self.model.arrays.give(w).copy() for w in self.trained.weights]
        return {
            "first": self.first.copy(),
            "present": None if self.trained is None else self.present.copy(),
            "weights": [{"layer": w} for w in weights],
            "trainings": self.trainings,
            "counts": self.seen.counts.copy(),
            "sums": self.seen.sums.copy(),
        }

    def load(self, state: states.Reader, *, rounds: int) -> None:
        """Inverse of `export`."""
        size = len(self.model.points)
        self._saved = self._read_features(state, "first")
        weights = [item.array("layer", np.float32, (None, None)) for item in state.readers("weights")]
        if weights or state.raw("present") is not None:
            shapes = [w.shape for w in weights]
            if not self.trains or shapes != self.model.shapes:
                wanted = self.model.shapes if self.trains else []
                raise StateError(f"state.engine.features.weights have shapes {shapes}, wanted {wanted}")
            self.trained = self.model.restore(weights)
            self._present = self._read_features(state, "present")
        self.trainings = state.integer("trainings", high=FARTHEST)
        self.seen.counts = state.array("counts", np.float64, (size,))
        self.seen.sums = state.array("sums", np.float64, (size,))
        check_whole(self.seen.counts, FARTHEST, "number of rewards")

    def check(self, *, told: int, looked: bool, largest: float) -> None:
        """Refuse sums to train on that are not those of the epoch."""
        seen = float(self.seen.counts.sum())
        states.check(seen == told or (looked and seen > told), "number of rewards to train on")
        check_sums(self.seen.counts, self.seen.sums, "sums of rewards to train on", largest=largest)

    def _read_features(self, state: states.Reader, name: str) -> Floats:
        """Features whose longest has length 1, or about as many as there are layers if they are not normalised."""
        features = state.array(name, np.float64, (len(self.model.points), None))
        with np.errstate(over="ignore"):
            longest = float(np.square(features).sum(axis=1).max(initial=0.0))
        fine = abs(longest - 1.0) <= 1e-3 if self.model.normalise else 0.0 < longest < _LARGEST_SQUARED_LENGTH
        states.check(fine and features.shape[1] <= len(features), "features")
        return features
