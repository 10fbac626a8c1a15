"""OPNN and ADA-OPNN (Hong, Li and Tewari, AISTATS 2023, section 5): the block engine on the features of a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from driftbandits import state as states
from driftbandits._util.checks import check_flag
from driftbandits._util.guard import guarded
from driftbandits._util.seeding import check_seed
from driftbandits.arms.arm_set import ArmSet
from driftbandits.errors import StateError
from driftbandits.neural import ArmsSeen, NetworkModel
from driftbandits.neural.model import INFINITE, NETWORK_SETTINGS, NetworkFacts, Rate, Width, check_rate, network_model
from driftbandits.neural.network import Network
from driftbandits.policies.algorithm import Family
from driftbandits.policies.inputs import CommonSettings
from driftbandits.policies.opkb.constants import Constants, Variant
from driftbandits.policies.opkb.opkb import PaperBlockPolicy
from driftbandits.policies.opkb.parts import FeatureSource
from driftbandits.state.reader import FARTHEST, check_sums, check_whole
from driftbandits.types import Floats, Ints

_LARGEST_SQUARED_LENGTH = 1e6  # of features that are not normalised, squared; usual is 1 per layer


class NetworkFeatures(FeatureSource):
    """Tangent features of a network that (if it `trains`) is trained anew from W^(0) at the start of every block.

    At a restart they become those of W^(0) again, unless it `keeps` them until the next training.

    The state stores features beside the trained weights: recomputed with another number of BLAS threads they could
    differ in the last bit.
    """

    def __init__(self, model: NetworkModel, *, trains: bool, keeps: bool = False) -> None:
        self.model = model
        self.trains = trains
        self.keeps = keeps
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
        self._back_to_the_start()
        self.forget(None)

    def _back_to_the_start(self) -> None:
        self.trained: Network | None = None
        self._present: Floats | None = None

    def forget(self, since: int | None) -> None:
        """What was seen, and unless it `keeps` them the features."""
        if not self.keeps:
            self._back_to_the_start()
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

    def check(self, *, told: int, probed: bool, largest: float) -> None:
        """Refuse sums to train on that are not those of the epoch."""
        seen = float(self.seen.counts.sum())
        states.check(seen == told or (probed and seen > told), "number of rewards to train on")
        check_sums(self.seen.counts, self.seen.sums, "sums of rewards to train on", largest=largest)

    def _read_features(self, state: states.Reader, name: str) -> Floats:
        """Features whose longest has length 1, or about as many as there are layers if they are not normalised."""
        features = state.array(name, np.float64, (len(self.model.points), None))
        with np.errstate(over="ignore"):
            longest = float(np.square(features).sum(axis=1).max(initial=0.0))
        fine = abs(longest - 1.0) <= 1e-3 if self.model.normalise else 0.0 < longest < _LARGEST_SQUARED_LENGTH
        states.check(fine and features.shape[1] <= len(features), "features")
        return features


PAPER_WIDTH, PAPER_DEPTH = 2048, 3  # m and L of the paper's experiments
_AUTHORS = {"variant": Variant.published(), "learning_rate": 1e-8, "normalise": False}  # beside the constants


class NeuralBlockPolicy(NetworkFacts, PaperBlockPolicy):
    """What OPNN and ADA-OPNN share: the settings of the network, and features that come from it.

    Parameters
    ----------
    width : m; "infinite" is the limit of all widths: `OPKB` with the `NeuralTangentKernel`, which training cannot move
    depth : L, the number of weight matrices
    steps : J, full-batch gradient steps per training, each on all arms seen whatever the number of rounds
    learning_rate : eta; "auto" takes half of the largest stable step size at each training. A fixed one that could
        diverge within the horizon is refused at once
    weight_decay : lambda, pulls the weights to where they began
    train : whether to train at all
    symmetric : begin with a network whose output is 0 everywhere (two halves that cancel); needs an even width
    normalise : divide the tangent kernel by its largest k(x, x), which is about `depth`
    device : None for NumPy, or a torch device such as "cuda" or "cpu" (the `torch` extra)
    constants : Constants, default Constants.neural()
    variant : Variant, default Variant.paper()
    others : see `Policy`
    """

    family = Family.NEURAL
    _seconds_of_trainings: ClassVar[float]  # in a run of 10,000 rounds at the paper's width and depth, on one core

    def __init__(
        self,
        arms: ArmSet,
        *,
        width: Width = PAPER_WIDTH,
        depth: int = PAPER_DEPTH,
        steps: int = 100,
        learning_rate: Rate = "auto",
        weight_decay: float = 10.0,
        train: bool = True,
        symmetric: bool = False,
        normalise: bool = True,
        device: str | None = None,
        constants: Constants | None = None,
        variant: Variant | None = None,
        **common: Unpack[CommonSettings],
    ) -> None:
        seed = common["seed"] = check_seed(common.get("seed", 0))  # the weights are drawn from it
        self._model = network_model(
            arms,
            seed=seed,
            width=width,
            depth=depth,
            steps=steps,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            symmetric=symmetric,
            normalise=normalise,
            device=device,
        )
        self.train = check_flag("train", train)
        trains = self.train and self._model.width != INFINITE
        keeps = isinstance(variant, Variant) and variant.after_restart == "kept_features"
        self._network = NetworkFeatures(self._model, trains=trains, keeps=keeps)
        chosen = Constants.neural() if constants is None else constants
        super().__init__(arms, self._network, constants=chosen, variant=variant, **common)
        if self.train:
            check_rate(self._model, self.horizon)

    @property
    @guarded
    def network(self) -> Network:
        """The network whose features are in use: trained when the present block began, or as it was drawn."""
        self._begin_once()
        return self._model.start if self._network.trained is None else self._network.trained

    @property
    @guarded
    def trainings(self) -> int:
        """How often the network was trained since the last start (a horizon that doubles is a new start)."""
        self._begin_once()
        return self._network.trainings

    def _setting(self, name: str) -> Any:
        return getattr(self._model, name) if name in NETWORK_SETTINGS else super()._setting(name)

    @classmethod
    def _read_settings(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        return {**settings, **super()._read_settings(settings)}


class OPNN(NeuralBlockPolicy):
    """OPKB on the features of a neural network, trained at the start of every block; for rewards that do not change.

    The network f(x; W) is fully connected with ReLU and no biases. Its features are g(x; W) / sqrt(m), the gradient
    with respect to its weights; the estimate, the laws and the blocks are those of `OPKB`. With `train=False` (the
    paper's OPNN0) the features stay those of the weights it was drawn with.

    It uses the arms' points, scaled to the unit sphere, and not their kernel. See docs/neural.md for when training
    helps. It never forgets; use `AdaOPNN` if the world may change.

    Its defaults are not enough where rewards change, nor for 10,000 rounds with a hundred arms that have little in
    common: it assumes that nothing changes, and must be told a longer horizon.

    Parameters
    ----------
    variant : Variant, default Variant.paper(); OPNN uses its `share` and `good_arms_by` only
    others : those of the network and of every policy, see `NeuralBlockPolicy`

    Cost: a training takes `steps` times three products of m x m and m x N matrices (2.4 s on one core at the default
    width and N = 100), and a run has as many trainings as blocks, about log2(T / E).

    >>> import numpy as np
    >>> arms = ArmSet(np.linspace(0, 1, 20)[:, None])
    >>> policy = OPNN(arms, horizon=1000, seed=0, width=64)
    >>> choice = policy.ask()
    >>> policy.tell(choice.id, 0.3)
    >>> policy.rounds, policy.trainings
    (1, 0)
    """

    @classmethod
    def published(cls, arms: ArmSet, **settings: Any) -> Self:
        """OPNN with the constants and step size of the authors' files, on unscaled features; OPNN0: `train=False`.

        Parameters
        ----------
        arms : the options to choose from
        settings : those of the class; they come before the authors'

        Returns
        -------
        OPNN

        Raises
        ------
        InputError
            For settings that the class refuses.
        """
        return cls(arms, **{"constants": Constants.published_stationary(), **_AUTHORS, **settings})


class AdaOPNN(NeuralBlockPolicy):
    """OPNN that replays its earlier laws to notice a change, and then starts anew from the initial weights.

    What `AdaOPKB` is to `OPKB`. While block j lasts, everything of the epoch, earlier blocks included, is judged with
    the features trained when it began. Every restart adds a few trainings.

    Its defaults are not enough for 10,000 rounds with a hundred arms: it must be told constants found for such a world;
    a horizon ten times as long helps where rewards change, and not always where they stay.

    >>> import numpy as np
    >>> arms = ArmSet(np.linspace(0, 1, 20)[:, None])
    >>> policy = AdaOPNN(arms, horizon=1000, seed=0, width=64)
    >>> batch = policy.ask(size=5)
    >>> policy.tell(batch.ids, [0.1, 0.2, 0.0, -0.1, 0.3])
    >>> policy.changes
    ()
    """

    reports_changes = True

    @classmethod
    def published(cls, arms: ArmSet, **settings: Any) -> Self:
        """ADA-OPNN with the constants and step size of the authors' files, unscaled features, restarts not capped.

        The network is that of the paper's text. The authors' code has `depth=5` and keeps features after a restart, as
        does `variant=dataclasses.replace(Variant.published(), after_restart="kept_features")`.

        Parameters
        ----------
        arms : the options to choose from
        settings : those of the class; they come before the authors'

        Returns
        -------
        AdaOPNN

        Raises
        ------
        InputError
            For settings that the class refuses.
        """
        return cls(arms, **{"constants": Constants.published_neural(), **_AUTHORS, **settings})

    def rounds_to_find(self, size: float | None = None) -> int:
        """Least horizon at which a change of a size can be found, see `first_detectable_horizon`.

        Parameters
        ----------
        size : by which the reward of an arm moves, in the user's units; by default half the reward range

        Returns
        -------
        int
        """
        return self._rounds_by_gaps(size)
