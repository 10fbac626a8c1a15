"""Bandits without a kernel, as controls that show what it buys: what learns every arm by itself belongs here."""
