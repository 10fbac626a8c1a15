"""What a reader has to know before trusting a page: few seeds, narrow networks, missing runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.experiments.groups import EXPERIMENTS
from driftbandits.experiments.judging.checks import Claim
from driftbandits.report.context import ReportContext
from driftbandits.report.formats import count, listed

MOST_UNFINISHED_NAMED = 3  # experiments, on the first screen


def banner(context: ReportContext) -> str:
    """One sentence on what is less than in the paper; nothing where nothing is."""
    parts = [*_few_seeds(context.judgements.claims), *_narrow(context.begun(context.results.experiments))]
    return f"{listed(parts)}." if parts else ""


def unfinished(context: ReportContext) -> str:
    """How many runs are missing, and where; nothing where none is."""
    lacking = context.missing(context.results.experiments)
    if not lacking:
        return ""
    total = sum(context.wanted.values())
    where = listed([f"{name} ({runs:,})" for name, runs in lacking.items()], MOST_UNFINISHED_NAMED)
    return f"{count(sum(lacking.values()), 'run')} of {total:,} are missing: {where}."


def _few_seeds(claims: Sequence[Claim]) -> list[str]:
    checks = [check for claim in claims for check in claim.checks if check.paper_seeds and check.seeds]
    few = [check for check in checks if check.seeds < check.paper_seeds]
    if not few:
        return []
    least = min(few, key=lambda check: check.seeds / check.paper_seeds)
    which = f"{len(few):,} of {count(len(checks), 'comparison')} {'has' if len(few) == 1 else 'have'}"
    return [f"{which} fewer seeds than the paper’s (the fewest: {least.seeds:,} of {least.paper_seeds:,})"]


def _narrow(experiments: Sequence[Experiment]) -> list[str]:
    """Networks that are less wide than the catalogue has them."""
    pairs = set()
    for experiment in experiments:
        catalogue = EXPERIMENTS.get(experiment.id)
        wide = {} if catalogue is None else {policy.label: policy.settings for policy in catalogue.policies}
        for policy in experiment.policies:
            here, there = (_width(settings) for settings in (policy.settings, wide.get(policy.label, {})))
            if 0 < here < there:
                pairs.add((here, there))
    return [f"networks are {here:,} wide instead of {there:,}" for here, there in sorted(pairs)]


def _width(settings: Mapping[str, Any]) -> int:
    """How wide a network is; 0 where there is none, or one of infinite width."""
    width = settings.get("width")
    return width if isinstance(width, int) else 0
