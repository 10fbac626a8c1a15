"""Logs of decisions: what another policy would have earned, and whether rewards change at all.

`Log.read` takes in a table of decisions and checks it, `evaluate` values other policies on it, `advise` says whether
adapting pays. Slow imports are deferred to first use.
"""

from driftbandits.logs.advising import Advice, advise
from driftbandits.logs.evaluating import Evaluation, evaluate
from driftbandits.logs.log import Log

__all__ = ["Advice", "Evaluation", "Log", "advise", "evaluate"]
