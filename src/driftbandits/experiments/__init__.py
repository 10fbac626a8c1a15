"""Experiments: what is run, how it is run, and the tables that come out."""
