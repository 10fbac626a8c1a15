"""Bandits without a kernel: what learns every arm by itself belongs here, as a control that shows what a kernel buys."""
