"""Attacks: what the library promises when things go wrong, tried many times over. Too long for the tests."""

import os

# One BLAS thread per process: attacks run side by side, and forked children must not wait for threads they do not have.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
