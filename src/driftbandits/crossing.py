"""Arms that are pairs: every option in every segment of the requests.

symbol  name          shape      meaning
O, S                             number of options, of segments; arm s O + o is option o in segment s
A       options       (O, O)     what options have in common
C       correlation   (S, S)     what segments have in common
K                     (SO, SO)   C kron A: the kernel of the pairs
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from driftbandits.errors import InputError, near_and_valid
from driftbandits.memory import FLOAT_BYTES, check_memory
from driftbandits.showing import shown
from driftbandits.types import Bools, Floats

Arms = TypeVar("Arms")
USUAL_CORRELATION = 0.5
_SEGMENTS_LISTED = 20


@dataclass(frozen=True, eq=False)
class Crossing(Generic[Arms]):
    """Which options in which segments: both are arm sets of their own, `options` without and `segments` with names."""

    options: Arms
    segments: Arms
    size: int  # options
    names: tuple[str, ...]  # of the segments

    def segment_of(self, arm: int) -> int:
        """Number of the segment an arm belongs to."""
        return arm // self.size

    def mask(self, segment: int) -> Bools:
        """The arms of a segment."""
        mask = np.zeros(self.size * len(self.names), dtype=np.bool_)
        mask[segment * self.size : (segment + 1) * self.size] = True
        return mask

    def number_of(self, segment: Any) -> int:
        """Number of the segment with this name."""
        try:
            return self.names.index(segment)
        except ValueError:
            listed = [*self.names[:_SEGMENTS_LISTED], *(["..."] if len(self.names) > _SEGMENTS_LISTED else [])]
            raise InputError(f"no segment is called {shown(segment)}; {near_and_valid(segment, listed)}") from None


def correlation_matrix(correlation: Any, size: int) -> Floats:
    """(S, S) with ones on the diagonal and the same correlation everywhere else.

    >>> correlation_matrix(0.5, 2).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    number = isinstance(correlation, numbers.Real) and not isinstance(correlation, (bool, np.bool_))
    if not number or not 0.0 <= float(correlation) <= 1.0:
        raise InputError(
            f"the correlation of any two segments must be a number from 0 (they have nothing in common) to 1 (they are "
            f"alike), got {shown(correlation)}"
        )
    return np.full((size, size), float(correlation)) + (1.0 - float(correlation)) * np.eye(size)


def pair_features(options: Floats, segments: Floats) -> Floats:
    """Features of the pairs, (S O, r_s r_o): their products are products of those of segments and of options.

    >>> pair_features(np.array([[1.0], [2.0]]), np.array([[3.0], [5.0]])).ravel().tolist()
    [3.0, 6.0, 5.0, 10.0]
    """
    numbers_ = options.size * segments.size
    check_memory(FLOAT_BYTES * numbers_, "features of options in segments", cure="take fewer, or a smoother kernel")
    return np.asarray(np.kron(segments, options), dtype=np.float64)


def pair_points(options: Floats, segments: Floats) -> Floats:
    """Coordinates of the options, then those of the segments."""
    return np.hstack([np.tile(options, (len(segments), 1)), np.repeat(segments, len(options), axis=0)])
