"""What every section of a report works from: results, and what is worked out once for all sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd

from driftbandits.experiments.definitions.policy_classes import policy_class
from driftbandits.experiments.definitions.specs import Experiment, PolicySpec, cells_of
from driftbandits.experiments.groups import GROUPS
from driftbandits.experiments.groups.judgements import Judgements
from driftbandits.experiments.judging.results import Results
from driftbandits.plots.palette import LineStyle, algorithm, line_styles
from driftbandits.policies import Policy
from driftbandits.report.pictures import file_name


@dataclass(frozen=True, eq=False)
class ReportContext:
    """Results, what was judged of them, the folder for figures, and what is worked out once for all sections."""

    results: Results
    figures: Path
    judgements: Judgements = field(default_factory=Judgements)

    @cached_property
    def palette(self) -> Mapping[str, LineStyle]:
        """How the line of every policy is drawn."""
        own = {
            algorithm(p.label): colour
            for e in self.results.experiments
            for p in e.policies
            if (colour := self.kind(e, p).colour) is not None
        }
        return line_styles(*([policy.label for policy in e.policies] for e in self.results.experiments), own=own)

    @cached_property
    def detecting(self) -> frozenset[str]:
        """Names of policies that report changes: those that say so, and any that has reported one."""
        runs = self.results.cells
        reported = set(
            runs.loc[runs["changes"].map(len) > 0, ["experiment", "policy"]].itertuples(index=False, name=None)
        )
        return frozenset(
            p.name
            for e in self.results.experiments
            for p in e.policies
            if self.kind(e, p).reports_changes or (e.id, p.label) in reported
        )

    @cached_property
    def _with_runs(self) -> frozenset[tuple[str, str]]:
        return frozenset(self.results.cells[["experiment", "policy"]].itertuples(index=False, name=None))

    def kind(self, experiment: Experiment, policy: PolicySpec) -> type[Policy]:
        """The class of a policy, for its facts; `Policy` itself where it has played nothing.

        A run's key holds the digest of its file, so a file that is loaded here is one that was played, and not any that
        the record of a stranger names.
        """
        return policy_class(policy.name) if (experiment.id, policy.label) in self._with_runs else Policy

    @cached_property
    def names(self) -> Mapping[str, str]:
        """A name for files and anchors, different for every experiment."""
        taken = {group.anchor for group in GROUPS}  # what a group may call its own figure
        names = {}
        for experiment in self.results.experiments:
            wish = name = file_name(experiment.id)
            number = 1
            while name in taken:
                number += 1
                name = f"{wish}-{number}"
            taken.add(name)
            names[experiment.id] = name
        return names

    @cached_property
    def played(self) -> Mapping[str, int]:
        """Finished runs by experiment."""
        return {str(name): int(runs) for name, runs in self.results.cells["experiment"].value_counts().items()}

    @cached_property
    def wanted(self) -> Mapping[str, int]:
        """Runs that each experiment asks for."""
        return {experiment.id: len(cells_of(experiment)) for experiment in self.results.experiments}

    def missing(self, experiments: Sequence[Experiment]) -> dict[str, int]:
        """Runs not finished, by experiment; those that are complete are left out."""
        lacking = {e.id: self.wanted[e.id] - self.played.get(e.id, 0) for e in experiments}
        return {name: runs for name, runs in lacking.items() if runs > 0}

    def begun(self, experiments: Sequence[Experiment]) -> list[Experiment]:
        """Experiments with at least one finished run."""
        return [e for e in experiments if self.played.get(e.id, 0)]

    def runs(self, experiment: Experiment) -> pd.DataFrame:
        """Finished runs of an experiment, one per row."""
        cells = self.results.cells
        return cells[cells["experiment"] == experiment.id]

    def summary(self, experiment: Experiment) -> pd.DataFrame:
        """One row per policy that has finished runs."""
        summary = self.results.summary
        return summary[summary["experiment"] == experiment.id]

    def spec(self, experiment: Experiment, label: str) -> PolicySpec:
        """What a label of the experiment stands for."""
        return next(policy for policy in experiment.policies if policy.label == label)
