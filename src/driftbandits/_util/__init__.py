"""Tools that know nothing of bandits."""
