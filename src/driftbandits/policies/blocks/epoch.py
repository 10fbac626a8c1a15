"""What a block policy has played and been told since its last restart: the common ground of the engine's parts.

symbol     name           shape
P^(m)      laws[m]        (N,)
b_m        baselines[m]   (N,) what is taken off the rewards of law m, or None for nothing
S(P^(m))   factor(m)      Cholesky factor, (r, r), by the features and regulariser of the present block
B(k)       blocks[k]      rewards told of block k
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.errors import StateError
from driftbandits.estimation import Sums, ips_estimate, law_factor, merge
from driftbandits.linalg import Cholesky
from driftbandits.policies.core.laws import freeze
from driftbandits.schedule import Replay
from driftbandits.state.plausible import FARTHEST, ROUNDING, check_sums, check_whole
from driftbandits.types import Bools, Floats, Ints

UNDER_WAY = 2**62  # in the place of the last tag and round of what has not ended


@dataclass
class OpenReplay:
    """A replay: its place in block `block`, when it began and ended, and what it has been told.

    One that is over may wait until the rewards of all its rounds are there; `stop_round` is the first round after it.
    """

    replay: Replay
    block: int
    first_tag: int
    first_round: int
    sums: Sums
    last_tag: int = UNDER_WAY
    stop_round: int = UNDER_WAY

    @property
    def whole(self) -> bool:
        """Whether it is its whole block, whose sums are those of the epoch."""
        return self.replay.index == self.block

    def end(self, tag: int, stop_round: int) -> None:
        """It is over: `tag` was its last stretch."""
        self.last_tag, self.stop_round = tag, stop_round

    def covers(self, tags: Ints) -> Bools:
        """Whether rounds with these tags belong to it."""
        return np.asarray((tags >= self.first_tag) & (tags <= self.last_tag))


class Epoch:
    """The laws of epoch `number`, the first of which has the number `law_base` among all laws of the policy."""

    def __init__(self, number: int, law_base: int) -> None:
        self.number = number
        self.law_base = law_base
        self.laws: list[Floats] = []
        self.baselines: list[Floats | None] = []
        self.blocks: list[Sums] = []
        self.tags: list[int] = []  # of the first stretch of every block
        self._factors: dict[int, Cholesky] = {}
        self._references: dict[int, Floats] = {}

    def view(self, features: Floats, regulariser: float) -> None:
        """Judge everything of the epoch by these features from now on."""
        self.features = features
        self.regulariser = regulariser
        self._factors = {}
        self._references = {}

    def add(self, law: Floats, baseline: Floats | None, tag: int) -> None:
        """A block begins that plays `law`."""
        self.laws.append(freeze(law.copy()))
        self.baselines.append(baseline)
        self.blocks.append(Sums.empty(len(self.laws), len(law)))
        self.tags.append(tag)

    def tell_earlier(self, block: int) -> Sums:
        """Sums of a block that is over, to be added to; what was concluded from them no longer holds."""
        self._references = {k: known for k, known in self._references.items() if k < block}
        return self.blocks[block]

    def factor(self, law: int) -> Cholesky:
        """S(P^(m)), factored when first needed."""
        if law not in self._factors:
            self._factors[law] = law_factor(self.features, self.laws[law], self.regulariser)
        return self._factors[law]

    def estimate(self, told: Sums) -> Floats:
        """(Residual) IPS estimate of every arm's reward, shape (N,)."""
        factors = [self.factor(m) for m in range(len(told.sums))] if told.told else []
        return ips_estimate(self.features, factors, told, self.baselines)

    def so_far(self) -> Floats:
        """Estimate from all that was told."""
        return self.estimate(merge(self.blocks))

    def reference(self, block: int) -> Floats | None:
        """Estimate from blocks 0 to `block`, None if nothing of them was told."""
        if block not in self._references:
            told = merge(self.blocks[: block + 1])
            if told.told == 0:
                return None
            self._references[block] = self.estimate(told)
        return self._references[block]

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values and arrays."""
        return {
            "number": self.number,
            "law_base": self.law_base,
            "laws": np.array(self.laws),
            "baselines": [{"given": b is not None, "values": np.zeros(0) if b is None else b} for b in self.baselines],
            "tags": np.array(self.tags),
            "blocks": [export_sums(part) for part in self.blocks],
        }

    def check_sums(self, told: Sums, *, most: int, largest: float) -> None:
        """Refuse more than `most` rewards, and sums beyond what rewards of this size and the baselines can give."""
        sizes = [largest + (0.0 if b is None else float(np.abs(b).max())) for b in self.baselines]
        check_whole(told.counts, most, "number of rewards told")
        weights = told.counts[:, None] * np.array(sizes[: len(told.counts)])[:, None]
        check_sums(np.broadcast_to(weights, told.sums.shape), told.sums, "sums of rewards told", slack=ROUNDING)

    @classmethod
    def load(cls, state: states.Reader, *, arms: int, last_tag: int) -> Epoch:
        """Inverse of `export`; `view` is left to the engine."""
        epoch = cls(state.integer("number", high=FARTHEST), state.integer("law_base", high=FARTHEST))
        laws = state.array("laws", np.float64, (None, arms))
        if not len(laws) or (laws < 0).any() or (np.abs(laws.sum(axis=1) - 1.0) > 1e-9).any():
            raise StateError("state.engine.epoch.laws are not probability vectors")
        epoch.laws = [freeze(law.copy()) for law in laws]
        epoch.baselines = [
            item.array("values", np.float64, (arms,)) if item.flag("given") else None
            for item in state.readers("baselines")
        ]
        epoch.blocks = [read_sums(item, laws=k + 1, arms=arms) for k, item in enumerate(state.readers("blocks"))]
        epoch.tags = state.array("tags", np.int64, (len(laws),)).tolist()
        if not len(epoch.blocks) == len(epoch.baselines) == len(laws):
            raise StateError(f"state.engine.epoch has {len(epoch.blocks)} blocks for {len(laws)} laws")
        if any(a >= b for a, b in zip([0, *epoch.tags], [*epoch.tags, last_tag + 1], strict=True)):
            raise StateError("state.engine.epoch.tags do not increase")
        return epoch


def latest_law(epoch: Epoch) -> Floats | None:
    """The law that the next one is likely to be near to."""
    return epoch.laws[-1] if epoch.laws else None


def export_sums(part: Sums) -> dict[str, Any]:
    """Sums as arrays."""
    return {"sums": part.sums.copy(), "counts": part.counts.copy()}


def read_sums(reader: states.Reader, *, laws: int, arms: int) -> Sums:
    """Inverse of `export_sums`."""
    counts = reader.array("counts", np.int64, (laws,))
    if (counts < 0).any():
        raise StateError("a number of rewards told in the state is negative")
    return Sums(sums=reader.array("sums", np.float64, (laws, arms)), counts=counts)
