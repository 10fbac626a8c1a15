"""Logs of decisions: what another policy would have earned, and whether rewards change at all.

`Log.read` reads a table of decisions and checks it, `evaluate` estimates what another policy would have earned on it,
`advise` says whether rewards change and whether a policy that adapts would earn more. Slow imports are deferred to
first use.
"""

from driftbandits.logs.advising import Advice, advise
from driftbandits.logs.evaluating import Evaluation, evaluate
from driftbandits.logs.log import Log

__all__ = ["Advice", "Evaluation", "Log", "advise", "evaluate"]
