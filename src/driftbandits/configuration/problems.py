"""Everything that is wrong said at once: who mends a file wants all of it, not one thing per run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from driftbandits.errors import DriftbanditsError, InputError


class Problems:
    """Collects errors of ours, and raises them together.

    >>> problems = Problems()
    >>> for value in (-1, 2, -3):
    ...     with problems.noted():
    ...         if value < 0:
    ...             raise InputError(f"{value} is negative")
    >>> problems.raise_all()
    Traceback (most recent call last):
    ...
    driftbandits.errors.InputError: -1 is negative
    -3 is negative
    """

    def __init__(self) -> None:
        self._found: list[DriftbanditsError] = []

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """What goes wrong inside is noted, and the rest of it is left out."""
        try:
            yield
        except DriftbanditsError as error:
            self._found.append(error)

    def raise_all(self) -> None:
        """Raise what was noted: one error as it is, several as one with a line each."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            raise InputError("\n".join(dict.fromkeys(map(str, self._found))))
