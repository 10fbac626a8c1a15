"""Ids of the paper's experiments, how other ids begin, and how names of worlds made from real data do: each once."""

from __future__ import annotations

# The paper's four, by the names of their worlds.
ENVIRONMENT_1, ENVIRONMENT_2 = "switching/1", "switching/2"
STATIONARY_COSINE, SLOW_COSINE = "cosine/stationary", "cosine/slow"
PAPER_TITLES = {
    ENVIRONMENT_1: "Environment 1: one switch",
    ENVIRONMENT_2: "Environment 2: two switches",
    STATIONARY_COSINE: "Stationary cosine bandit",
    SLOW_COSINE: "Slowly varying cosine bandit",
}

SUITE_PREFIX = "suite/"
REAL_PREFIX = "real/"  # of a world's name too: its seed is the number of the start offset
STATIONARY_PREFIX = "stationary/"  # after the prefix of a group: worlds of the suite in which nothing changes

YARDSTICK_PREFIX = "yardstick/"
YARDSTICK_PAPER_PREFIX = f"{YARDSTICK_PREFIX}paper/"
YARDSTICK_REAL_PREFIX = f"{YARDSTICK_PREFIX}{REAL_PREFIX}"

CALIBRATED_PREFIX = "calibrated/"
CALIBRATED_PAPER_PREFIX = f"{CALIBRATED_PREFIX}paper/"
CALIBRATED_ALARMS_PREFIX = f"{CALIBRATED_PREFIX}alarms/"
CALIBRATED_DELAYS_PREFIX = f"{CALIBRATED_PREFIX}delays/"
