"""Choices among numbers that differ by rounding alone, made the same way on every machine.

Numbers that are equal on paper differ in their last digits, and in which way depends on the processor: on how many
numbers it adds at once, and whether it rounds between a product and a sum. A plain argmax then takes another one on
another machine, and a sort that is not stable another order even where all digits agree. Here, numbers within a slack
of one another are equal, and of equal ones the first is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from driftbandits.types import Floats, Ints

SLACK = 1e-9  # between numbers of about 1: far more than rounding adds up to, far less than what matters


_AS_FIRST_RELEASED: ContextVar[bool] = ContextVar("as_first_released", default=False)


@contextmanager
def as_first_released(really: bool) -> Iterator[None]:
    """While a state of 0.3.0 is restored: features and cells of arms as that release chose them.

    What is in such a state is said in these features; in others it would mean something else.
    """
    token = _AS_FIRST_RELEASED.set(really)
    try:
        yield
    finally:
        _AS_FIRST_RELEASED.reset(token)


def is_canonical() -> bool:
    """Whether features and cells of arms are chosen in the same way on every machine."""
    return not _AS_FIRST_RELEASED.get()


def first_largest(values: Floats, *, slack: float = SLACK) -> int:
    """Place of the first value that is at most `slack` below the largest.

    >>> first_largest(np.array([0.1, 0.3, 0.3 + 1e-16, 0.2]))
    1
    """
    return int((values >= values.item(values.argmax()) - slack).argmax())


def largest_first(values: Floats, *, slack: float = SLACK) -> Ints:
    """Places of all values from the largest to the smallest, those within `slack` of their neighbours in turn.

    >>> largest_first(np.array([0.1, 0.3, 0.3 + 1e-16, 0.2])).tolist()
    [1, 2, 3, 0]
    """
    order = np.argsort(-values, kind="stable")
    if len(order) < 2:
        return order
    apart = values[order[:-1]] - values[order[1:]] > slack
    if apart.all():
        return order
    group: Ints = np.zeros(len(order), dtype=np.int64)
    np.cumsum(apart, out=group[1:])
    return np.asarray(order[np.lexsort((order, group))])


def some_largest(values: Floats, count: int, *, slack: float = SLACK) -> Ints:
    """Places of the `count` largest values, growing; of those within `slack` of the last of them, the first.

    >>> some_largest(np.array([0.3, 0.1, 0.3 + 1e-16, 0.4]), 2).tolist()
    [0, 3]
    """
    least = np.partition(values, -count)[-count]
    larger = values > least + slack
    equal = np.flatnonzero((values >= least - slack) & ~larger)
    larger[equal[: count - int(np.count_nonzero(larger))]] = True
    return np.flatnonzero(larger)
