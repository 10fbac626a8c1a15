"""Tuning: searches on tuning seeds only, as Optuna studies that any number of processes and machines may share.

`own` tunes one policy; `spaces` says what is searched and where, `study` which points continue and how a search is
kept, `search` who plays what. Nothing here needs Optuna until a search begins.
"""

from driftbandits.tuning.own import tune
from driftbandits.tuning.spaces import Point, Space, TuningWorld, trial_points
from driftbandits.tuning.study import BestSettings, PointScore, StorageError, Tuned

__all__ = [
    "BestSettings",
    "Point",
    "PointScore",
    "Space",
    "StorageError",
    "Tuned",
    "TuningWorld",
    "trial_points",
    "tune",
]
