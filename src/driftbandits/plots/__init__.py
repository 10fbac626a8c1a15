"""Plots: `data` computes the small table behind a plot, `figures` draws it."""
