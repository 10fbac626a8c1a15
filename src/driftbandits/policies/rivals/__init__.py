"""Policies of other kinds: MASTER and BOB, which play other policies, exponential weights, and Thompson sampling."""
