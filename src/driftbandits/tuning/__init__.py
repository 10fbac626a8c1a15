"""Tuning: searches on tuning seeds only, as Optuna studies that any number of processes and machines may share.

`comparison` and `constants` are the two searches; `spaces` says what is searched, `rungs` who goes on, `study` and
`storage` how it is kept, `search` who plays what. Nothing here needs Optuna until a search is begun.
"""

from driftbandits.tuning.comparison import tune_comparison
from driftbandits.tuning.constants import tune_constants
from driftbandits.tuning.points import Point, Space, World, trial_points
from driftbandits.tuning.records import Found, PointScore, Tuned
from driftbandits.tuning.storage import StorageError

__all__ = [
    "Found",
    "Point",
    "PointScore",
    "Space",
    "StorageError",
    "Tuned",
    "World",
    "trial_points",
    "tune_comparison",
    "tune_constants",
]
