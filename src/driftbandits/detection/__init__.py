"""Detection of changes: what a detector is, the tests there are, how long they need, and how well they did.

Rule: nothing here knows a policy. A detector sees epochs, rewards and beliefs through the protocols it states.
"""

from driftbandits.detection.detector import Detection, Detector, Finding, Verdict, detections, first_detectable_horizon
from driftbandits.detection.drift_detector import DriftDetector

__all__ = ["Detection", "Detector", "DriftDetector", "Finding", "Verdict", "detections", "first_detectable_horizon"]
