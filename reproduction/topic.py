"""What a topic of the study is: experiments that are named, judged and shown together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from driftbandits.datasets import REAL_PREFIX
from driftbandits.errors import InputError
from driftbandits.experiments.results import Results
from driftbandits.experiments.seeds import EVALUATION, SeedRange
from driftbandits.experiments.specs import Experiment
from driftbandits.policies.algorithm import Family
from driftbandits.report.blocks import Block, ReportContext, experiment_blocks
from reproduction.catalogue import OF_THE_PAPER, quick
from reproduction.claims import Claim, Judgement, TargetVerdict

Kind = TypeVar("Kind", bound=Judgement)


@dataclass(frozen=True)
class Judgements:
    """The judgements of all groups of which anything was played: what `judge` gives back.

    Parameters
    ----------
    each : in the order of the groups

    >>> Judgements().verdicts, Judgements().markdown()
    ((), '')
    """

    each: tuple[Judgement, ...] = ()

    def of(self, kind: type[Kind]) -> Kind | None:
        """The judgement of a kind, if there is one."""
        return next((judgement for judgement in self.each if isinstance(judgement, kind)), None)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """All claims that were checked; those that nothing was played for are "not run"."""
        return tuple(claim for judgement in self.each for claim in judgement.claims)

    @property
    def verdicts(self) -> tuple[TargetVerdict, ...]:
        """Verdicts on all targets."""
        return tuple(verdict for judgement in self.each for verdict in judgement.verdicts)

    @property
    def files(self) -> Mapping[str, str]:
        """Texts to write, by the name of the file."""
        return {name: text for judgement in self.each for name, text in judgement.files.items() if text}

    def markdown(self) -> str:
        """All of it to read, one judgement after the other."""
        return "\n".join(text for judgement in self.each if (text := judgement.markdown()))


@dataclass(frozen=True, eq=False)
class StudyContext(ReportContext):
    """What every chapter works from: results, and what was judged of them."""

    judgements: Judgements = field(default_factory=Judgements)
    reserved: frozenset[str] = frozenset()

    @property
    def reserved_names(self) -> frozenset[str]:
        """The anchors of groups, which call figures by them."""
        return self.reserved

    def apart(self, experiment: Experiment) -> tuple[frozenset[str], frozenset[str]]:
        """The paper's own algorithms, and those that go beyond it: they stand beside its rivals."""
        kinds = {policy.label: self.kind(experiment, policy) for policy in experiment.policies}
        return (
            frozenset(label for label, kind in kinds.items() if kind.__name__ in OF_THE_PAPER),
            frozenset(label for label, kind in kinds.items() if kind.family == Family.NOTHING_TO_SET),
        )


Judge = Callable[[Results], Judgement | None]
MakeBlocks = Callable[[StudyContext, Sequence[Experiment]], Sequence[Block]]
Shorten = Callable[[Experiment], Experiment | None]
Played = Literal["always", "in full", "when named"]  # what a group is played for when nothing is named


@dataclass(frozen=True)
class Group:
    """Experiments that are named, judged and shown together.

    Parameters
    ----------
    name : what asks for it; asking for `paper` asks for `paper/d3` too. Where all ids begin with it, as in `suite/...`,
        whatever else begins so belongs to the group too
    title, lead : of its chapter on the page
    experiments : in the order in which they are played
    judge : gives a Judgement of results, or None where nothing it is about was played; one that several groups share
        is asked once
    blocks : makes its chapter from the context and those of its experiments that are in the results
    quick : an experiment as a short run plays it, None where it leaves it out
    played : in which runs, if nothing is named
    anchor : its chapter's on the page; by default the name
    purpose : what its seeds are for; seeds of another purpose are refused

    >>> group = Group("small", "A small one", "One world.", (Experiment("small/1", "One", "switching/1", {}, (), ()),))
    >>> group.holds("small/1"), group.welcomes("small/2"), group.anchor
    (True, True, 'small')
    """

    name: str
    title: str
    lead: str
    experiments: tuple[Experiment, ...]
    judge: Judge | None = None
    blocks: MakeBlocks = experiment_blocks
    quick: Shorten = quick
    played: Played = "when named"
    anchor: str = ""
    purpose: SeedRange = EVALUATION

    def __post_init__(self) -> None:
        for experiment in self.experiments:
            simulated = not experiment.environment.startswith(REAL_PREFIX)  # a real series has start offsets, not seeds
            if simulated and not self.purpose.holds(experiment.seeds):
                raise InputError(
                    f"{experiment.id} must be played on {self.purpose.purpose} seeds, from {self.purpose.first:,}"
                )
        if not self.anchor:
            object.__setattr__(self, "anchor", self.name)

    def holds(self, name: str) -> bool:
        """Whether an experiment called `name` is listed here."""
        return any(experiment.id == name for experiment in self.experiments)

    def welcomes(self, name: str) -> bool:
        """Whether an experiment that no group lists belongs here: it begins as all that are listed do."""
        beginning = f"{self.name}/"
        return all(one.startswith(beginning) for one in (name, *(experiment.id for experiment in self.experiments)))

    def is_part_of(self, name: str) -> bool:
        """Whether asking for `name` asks for this group."""
        return self.name == name or self.name.startswith(f"{name}/")
