"""The study of the paper: its experiments, claims and report, and all that was tuned and measured with them.

>>> from driftbandits import experiments
>>> import reproduction
>>> results = experiments.play(["switching/1"], store="results/mine")  # doctest: +SKIP
>>> reproduction.judge(results).verdicts  # doctest: +SKIP

One file per topic: `paper`, `growth`, `linear`, `comparison`, `suite`, `real_data`, `autobandit`, `calibrated`. Each
has its worlds, its policies, its claims and its chapter of the report. It is no part of the installed package, but
runs from a checkout: `python -m reproduction` or `driftbandits reproduce`.
"""

from reproduction.claims import Judgement
from reproduction.groups import EXPERIMENTS, GROUPS, find_experiments, judge
from reproduction.page import write_report
from reproduction.topic import Group, Judgements

__all__ = [
    "EXPERIMENTS",
    "GROUPS",
    "Group",
    "Judgement",
    "Judgements",
    "find_experiments",
    "judge",
    "write_report",
]
