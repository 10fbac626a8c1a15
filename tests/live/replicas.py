"""What tests look at behind an experiment."""

from driftbandits.testing.helpers import require_equal


def replica_of(experiment):
    return experiment.submit("inspect", {"inspect": lambda _, replica: replica}).result()


def snapshot_now(experiment):
    """Write a snapshot, and wait for it."""
    experiment.submit("inspect", {"inspect": lambda writer, replica: writer.snapshot(replica)}).result().result()


def state_of(replica):
    return {**replica.plain_values(), "open": replica.open, "policy": replica.policy and replica.policy.state_dict()}


def require_same(left, right):
    require_equal(state_of(left), state_of(right))
