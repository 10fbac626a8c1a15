"""The parts of `CalibratedOPKB`, a concept a file.

`evidence`: how likely rewards are under each kernel, size of the signal and noise; `surrogate`: the Gaussian process
believed, and the rounds behind it; `closed_forms`: the constants that follow; `streams`: the change detector, in theory
mode with `gap_widths` beside it (`detector`); `looks`: second looks at arms that surprised.
"""
