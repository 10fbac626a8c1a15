"""AutoBandit as every experiment plays it: one setting for everything, told neither kernel nor noise."""

from __future__ import annotations

from driftbandits.experiments.specs import PolicySpec

LABEL = "AutoBandit"
# When the policy is registered: (PolicySpec(LABEL, "AutoBandit", {"kernel": "auto"}),)
AUTO: tuple[PolicySpec, ...] = ()
