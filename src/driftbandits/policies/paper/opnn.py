"""OPNN and ADA-OPNN (Hong, Li and Tewari, AISTATS 2023, section 5): the block engine on the features of a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

from driftbandits.arms import ArmSet
from driftbandits.checks import check_flag
from driftbandits.neural.model import INFINITE, Rate, Width
from driftbandits.neural.network import Network
from driftbandits.policies.core.facts import Family
from driftbandits.policies.core.guard import guarded
from driftbandits.policies.core.network import NetworkFacts, check_rate, network_model, network_settings
from driftbandits.policies.core.settings import CommonSettings
from driftbandits.policies.paper.base import PaperBlockPolicy
from driftbandits.policies.paper.constants import Constants, Variant
from driftbandits.policies.paper.features import NetworkFeatures
from driftbandits.seeding import check_seed

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

    @classmethod
    def seconds(cls, rounds: float, settings: Mapping[str, Any]) -> float:
        """Trainings in addition, whose number hardly depends on the rounds."""
        without = super().seconds(rounds, settings)
        if not cls.trains(settings):
            return without
        width, depth = settings.get("width", PAPER_WIDTH), settings.get("depth", PAPER_DEPTH)
        size: float = (width / PAPER_WIDTH) ** 2 * (depth - 2) / (PAPER_DEPTH - 2)
        return without + size * cls._seconds_of_trainings

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
        self._network = NetworkFeatures(self._model, trains=self.train and self._model.width != INFINITE)
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

    def _settings(self) -> dict[str, Any]:
        return {**super()._settings(), **self._network_settings()}

    def _shown(self) -> dict[str, Any]:
        return {**super()._shown(), **self._network_settings()}

    def _network_settings(self) -> dict[str, Any]:
        return {**network_settings(self._model), "train": self.train}

    @classmethod
    def _read_settings(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        return {**settings, **super()._read_settings(settings)}


class OPNN(NeuralBlockPolicy):
    """OPKB on the features of a neural network that is trained at the start of every block; for a steady world.

    The network f(x; W) is fully connected with ReLU and no biases. Its features are g(x; W) / sqrt(m), the gradient
    with respect to its weights; the estimate, the laws and the blocks are those of `OPKB`. With `train=False` (the
    paper's OPNN0) the features stay those of the weights it was drawn with.

    It uses the arms' points, brought to the unit sphere, and not their kernel. See docs/neural.md for when training
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

    colour = "#E69F00"
    of_the_paper = True
    seconds_per_run = 0.1
    microseconds_per_round = 1.5
    _seconds_of_trainings = 20.0

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

    label = "ADA-OPNN"
    colour = "#D55E00"
    of_the_paper = True
    reports_changes = True
    seconds_per_run = 0.1
    microseconds_per_round = 11.0
    _seconds_of_trainings = 90.0

    @classmethod
    def published(cls, arms: ArmSet, **settings: Any) -> Self:
        """ADA-OPNN with the constants and step size of the authors' files, unscaled features, restarts not capped.

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
