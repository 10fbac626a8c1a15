"""Definitions: what is played, by whom and on which seeds, as plain values; plays nothing."""
