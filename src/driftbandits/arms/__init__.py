"""Arms: what can be played, its points and features, and the kernels that say what arms have in common."""

from driftbandits.arms.arm_set import ArmSet as ArmSet
