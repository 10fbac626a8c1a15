"""AutoBandit as every experiment plays it: one setting for everything, told neither kernel nor noise."""

from __future__ import annotations

from driftbandits.experiments.definitions.specs import PolicySpec

LABEL = "AutoBandit"
AUTO: tuple[PolicySpec, ...] = (PolicySpec(LABEL, "AutoBandit", {"kernel": "auto"}),)
