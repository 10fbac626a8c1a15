"""What tests look at behind an experiment."""

from driftbandits.testing.helpers import require_equal


def player_of(experiment):
    return experiment._writer._handlers.player


def state_of(player):
    return {**player.books(), "open": player.open, "policy": player.policy and player.policy.state_dict()}


def require_same(left, right):
    require_equal(state_of(left), state_of(right))
