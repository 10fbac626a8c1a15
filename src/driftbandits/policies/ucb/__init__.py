"""Bandits without a kernel, as controls that show what it buys: every arm is learned by itself."""
