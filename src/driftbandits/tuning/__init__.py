"""Tuning: searches on tuning seeds only, as Optuna studies that any number of processes and machines may share.

`comparison`, `own` and `constants` are what is searched for; `spaces`, `space_file` and `points` say where, `rungs` who
goes on, `study` and `storage` how it is kept, `search` who plays what, `tuned_file` what is written, `launch` puts them
together. `oracles` plays plain `grids` in every world, and needs no study. Nothing here needs Optuna until a search is
begun.
"""

from driftbandits.tuning.comparison import tune_comparison
from driftbandits.tuning.constants import tune_constants
from driftbandits.tuning.own import tune
from driftbandits.tuning.points import Point, Space, TuningWorld, trial_points
from driftbandits.tuning.records import BestSettings, PointScore, Tuned
from driftbandits.tuning.storage import StorageError

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
    "tune_comparison",
    "tune_constants",
]
