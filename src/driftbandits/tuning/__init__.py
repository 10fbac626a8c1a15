"""Tuning: searches on tuning seeds only."""
