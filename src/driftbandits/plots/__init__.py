"""Plots: `data` computes the small table behind a plot, `palette` gives every policy its look, `figures` draws."""
