"""Blocks and replays: which past law is played when (the paper's Schedule).

Block j has 2^j slots of E rounds. A replay of index m fills 2^m slots from a multiple of 2^m and is drawn with
probability 2^((m - j) / 2); the whole block is the replay of index j. A round follows the smallest index covering it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from driftbandits.errors import StateError
from driftbandits.types import Floats, Ints


@dataclass(frozen=True, slots=True, order=True)
class Replay:
    """Slots `start` up to but not including `stop` of a block, meant for the law of index `index`."""

    start: int
    stop: int
    index: int


@dataclass(frozen=True)
class Schedule:
    """The replays of one block, and the stretches into which their ends cut it.

    Stretch s covers the slots `edges[s]` up to `edges[s + 1]` and follows the law of index `indices[s]`: the law cannot
    change inside a stretch and no replay ends inside one.
    """

    block: int
    replays: tuple[Replay, ...]
    edges: Ints
    indices: Ints

    def __len__(self) -> int:
        return len(self.indices)

    def starting(self, slot: int) -> tuple[Replay, ...]:
        """Replays that begin at the edge `slot`."""
        return tuple(replay for replay in self.replays if replay.start == slot)


def replay_probability(index: int, block: int) -> float:
    """Chance that one slot of index `index` in block `block` is replayed.

    >>> replay_probability(1, 3)
    0.5
    """
    return float(2.0 ** ((index - block) / 2))


def draw_schedule(block: int, generator: np.random.Generator, *, lowest: int = 0, scale: float = 1.0) -> Schedule:
    """Draw the replays of indices `lowest` to `block` - 1, each with `scale` times its chance, and add the whole block.

    >>> len(draw_schedule(0, np.random.default_rng(0)))
    1
    """
    replays = [Replay(start=0, stop=2**block, index=block)]
    for index in range(lowest, block):
        coins = generator.random(2 ** (block - index))
        starts = np.flatnonzero(coins < scale * replay_probability(index, block)) * 2**index
        replays.extend(Replay(start=int(s), stop=int(s) + 2**index, index=index) for s in starts)
    return build_schedule(block, replays)


def build_schedule(block: int, replays: list[Replay]) -> Schedule:
    """Cut the block at the ends of its replays and find the smallest index of every stretch."""
    ordered = tuple(sorted(replays))
    edges = np.unique([edge for replay in ordered for edge in (replay.start, replay.stop)])
    indices = np.full(len(edges) - 1, block, dtype=np.int64)
    for replay in sorted(ordered, key=lambda r: -r.index):  # smaller indices overwrite larger ones
        first, last = np.searchsorted(edges, [replay.start, replay.stop])
        indices[first:last] = replay.index
    return Schedule(block=block, replays=ordered, edges=edges.astype(np.int64), indices=indices)


def read_replay(row: Sequence[int], block: int) -> Replay:
    """A replay from its saved (start, stop, index), checked to lie where block `block` can have one."""
    if not isinstance(row, Sequence) or len(row) != 3 or not all(isinstance(value, int) for value in row):
        raise StateError(f"a replay must be three whole numbers, got {row!r}")
    start, stop, index = row
    if not (0 <= index <= block and start >= 0 and stop == start + 2**index <= 2**block and start % 2**index == 0):
        raise StateError(f"({start}, {stop}, {index}) is not a replay of block {block}")
    return Replay(start=start, stop=stop, index=index)


def replayed_share(block: int, *, lowest: int = 0) -> float:
    """Expected share of a block's rounds that follow an earlier law: 1 - prod_{m < j} (1 - 2^((m - j) / 2)).

    >>> [round(replayed_share(j), 3) for j in (3, 6, 9)]
    [0.905, 0.949, 0.958]
    """
    chances: Floats = np.array([replay_probability(index, block) for index in range(lowest, block)])
    return float(1.0 - np.prod(1.0 - chances))
