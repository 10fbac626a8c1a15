"""Policies that assume nothing of the rewards but their range, not even chance, belong here."""
