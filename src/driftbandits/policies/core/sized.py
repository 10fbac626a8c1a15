"""Policies that forget by a size: a window, a period or a discount; given, computed from the horizon, or usual."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from driftbandits.errors import InputError
from driftbandits.policies.core.base import Policy


class SizedPolicy(Policy):
    """A policy with a size, the setting called `_size_name`. `BanditOverBandit` tries sizes of such a policy."""

    _size_name: ClassVar[str]
    _usual_size: ClassVar[float]  # where neither the size nor how the world moves is told
    _size: float | None  # None: to be computed

    @property
    def _told_drift(self) -> float | None:
        """What was told of how the world moves, to compute the size from; None for nothing."""
        return None

    def _set_size(self, size: float | None) -> None:
        """Keep the size as given; without one, where the drift is told, it is computed, which needs a horizon."""
        self._size = self._usual_size if size is None and self._told_drift is None else size
        self.needs_horizon = self._size is None

    @abstractmethod
    def _compute_size(self, horizon: int) -> float:
        """The size for a known horizon."""

    def _resolve_size(self, horizon: int | None) -> float:
        """The size given, or the computed one."""
        if self._size is not None:
            return self._size
        if horizon is None:
            raise InputError(f"{self._size_name}=None needs a horizon")
        return self._compute_size(horizon)
