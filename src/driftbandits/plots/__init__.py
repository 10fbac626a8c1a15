"""Plots: `data` computes the small table behind a plot, `palette` gives policies their line styles, `figures` draws."""
