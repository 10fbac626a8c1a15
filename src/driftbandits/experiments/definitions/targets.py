"""What AutoBandit and CalibratedOPKB are asked to reach; every number was set before anything was played.

A ratio is a mean final regret over that of a rival, in the same worlds and on the same seeds.
"""

from __future__ import annotations

# AutoBandit, over the baselines of the yardstick: geometric means over all worlds of the suite,
AUTOBANDIT_MOST_OVER_TUNED_WINDOW = 0.70
AUTOBANDIT_MOST_OVER_TUNED_DISCOUNT = 0.75
AUTOBANDIT_MOST_OVER_BEST_SINGLE_SETTING = 0.5
# and in the worst single world.
AUTOBANDIT_MOST_IN_WORST_CHANGING_WORLD = 1.5
AUTOBANDIT_MOST_IN_WORST_STATIONARY_WORLD = 2.5
AUTOBANDIT_MOST_OVER_ADA_OPKB = 0.2  # in the worst of the paper's environments
AUTOBANDIT_MOST_FALSE_ALARMS_PER_RUN = 0.1

CALIBRATED_OPKB_MOST_OVER_ADA_OPKB = 0.5  # in the worst world with changes
CALIBRATED_OPKB_MOST_RUNS_WITH_FALSE_ALARM = 0.1  # the default of the policy's `false_alarm`
