"""The parts of `CalibratedOPKB`, a concept a file.

`evidence`: how likely the rewards are under each kernel, size of the signal and noise; `surrogate`: the Gaussian process
that is believed, and the rounds behind it; `closed_forms`: the constants that follow; `streams`: the change detector.
"""
