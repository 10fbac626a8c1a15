"""Policies that forget by a size: a window, a period or a discount, given or computed from the horizon."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from driftbandits.errors import InputError
from driftbandits.policies.core.base import Policy


class SizedPolicy(Policy):
    """A policy with a size, the setting called `_size_name`. `BanditOverBandit` tries sizes of such a policy."""

    _size_name: ClassVar[str]
    _size: float | None  # as given; None: to be computed

    def _set_size(self, size: float | None) -> None:
        """Keep the size as given; a computed one needs a horizon."""
        self._size = size
        self.needs_horizon = size is None

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
