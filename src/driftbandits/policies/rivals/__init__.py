"""Policies of other kinds: MASTER and BOB, which play other policies, and exponential weights."""
