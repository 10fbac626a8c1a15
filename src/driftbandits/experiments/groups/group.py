"""What a group of experiments is: what is played, how it is judged, and how a page shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from driftbandits.experiments.definitions.lengths import quick
from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.experiments.judging.judgement import Judgement
from driftbandits.experiments.judging.results import Results

Judge = Callable[[Results], Judgement | None]
Shorten = Callable[[Experiment], Experiment | None]
Played = Literal["always", "in full", "when named"]  # what a group is played for when nothing is named
ONE_BLOCK_PER_EXPERIMENT = "driftbandits.report.worlds:experiment_blocks"


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
    blocks : the function that makes its chapter, as `module:function`, loaded when a page is written, so that playing
        needs no figures; it is given the ReportContext and those of its experiments that are in the results
    quick : an experiment as a taste, None where there is none
    played : in which runs, if nothing is named
    anchor : its chapter's on the page; by default the name

    >>> from driftbandits.experiments import EXPERIMENTS
    >>> group = Group("taste", "A taste", "One world.", (EXPERIMENTS["switching/1"],))
    >>> group.holds("switching/1"), group.anchor
    (True, 'taste')
    """

    name: str
    title: str
    lead: str
    experiments: tuple[Experiment, ...]
    judge: Judge | None = None
    blocks: str = ONE_BLOCK_PER_EXPERIMENT
    quick: Shorten = quick
    played: Played = "when named"
    anchor: str = ""

    def __post_init__(self) -> None:
        if not self.anchor:
            object.__setattr__(self, "anchor", self.name)

    def holds(self, name: str) -> bool:
        """Whether an experiment called `name` is listed here.

        Parameters
        ----------
        name : of an experiment

        Returns
        -------
        bool
        """
        return any(experiment.id == name for experiment in self.experiments)

    def welcomes(self, name: str) -> bool:
        """Whether an experiment that no group lists belongs here: it begins as all that are listed do.

        Parameters
        ----------
        name : of an experiment

        Returns
        -------
        bool
        """
        beginning = f"{self.name}/"
        return all(one.startswith(beginning) for one in (name, *(experiment.id for experiment in self.experiments)))

    def is_part_of(self, name: str) -> bool:
        """Whether asking for `name` asks for this group.

        Parameters
        ----------
        name : as somebody asks for it

        Returns
        -------
        bool
        """
        return self.name == name or self.name.startswith(f"{name}/")
