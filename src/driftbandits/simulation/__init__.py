"""Playing a policy in a world, what happened, and how well it went."""

from driftbandits.detection.detector import Detection, detections
from driftbandits.simulation.engine import simulate
from driftbandits.simulation.trace import Trace

__all__ = ["simulate", "Trace", "Detection", "detections"]
