"""The log-det design problem: which law over arms teaches most for its cost."""

from driftbandits.design.problem import Design, Status
from driftbandits.design.solve import effective_dimension, information_gain, solve_design

__all__ = ["Design", "Status", "effective_dimension", "information_gain", "solve_design"]
