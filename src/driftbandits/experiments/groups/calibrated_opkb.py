"""What CalibratedOPKB is judged by."""

from __future__ import annotations

from driftbandits.experiments.definitions.calibrated_opkb import CALIBRATED_GROUP
from driftbandits.experiments.groups.group import Group
from driftbandits.experiments.judging.calibrated_opkb import judge_calibrated_group

CALIBRATED_OPKB_GROUP = Group(
    name="calibrated",
    title="CalibratedOPKB: worlds, false alarms, delays",
    lead="ADA-OPKB without constants, and with alarms whose probability is set: in the suite and the paper’s worlds "
    "against ADA-OPKB (tuned, published, with the constants of the proofs) and AutoBandit, the kernel told to all "
    "but the last; in stationary worlds, where at most a tenth of all runs may ever have an alarm, whatever the "
    "noise and however wrong the kernel; and on single changes.",
    experiments=tuple(CALIBRATED_GROUP.values()),
    judge=judge_calibrated_group,
    blocks="driftbandits.report.calibrated_opkb:calibrated_opkb_blocks",
)
