"""Rounds with rewards told at once."""


def play(policy, reward, rounds):
    """Play `rounds` rounds of `reward(round, arm)`; the arms."""
    played = []
    for _ in range(rounds):
        choice = policy.ask()
        policy.tell(choice.id, float(reward(choice.id, choice.arm)))
        played.append(choice.arm)
    return played
