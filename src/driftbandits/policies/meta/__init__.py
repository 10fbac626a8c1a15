"""Policies that play other policies, and what they need for it, belong here; it may import any other family."""
