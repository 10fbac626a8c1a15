"""What a policy keeps, read the public way."""


def engine_of(policy):
    """The policy's own part of its state."""
    return policy.state_dict()["engine"]
