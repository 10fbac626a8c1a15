"""What AutoBandit is judged by."""

from __future__ import annotations

from driftbandits.experiments.definitions.yardstick import YARDSTICK
from driftbandits.experiments.groups.group import Group
from driftbandits.experiments.judging.yardstick import judge_yardstick

AUTOBANDIT_YARDSTICK = Group(
    name="yardstick",
    title="AutoBandit and its yardstick",
    lead="What AutoBandit, with one setting and told nothing, is judged by. “Tuned here” are settings found for that "
    "very world on tuning seeds, “one setting” those found over all worlds; both are told kernel and noise. "
    "On real series nobody knows the noise, and all baselines take it for a tenth of half the reward range.",
    experiments=tuple(YARDSTICK.values()),
    judge=judge_yardstick,
    blocks="driftbandits.report.yardstick:yardstick_blocks",
)
