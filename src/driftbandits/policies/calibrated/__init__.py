"""`CalibratedOPKB` and its parts: what only this policy uses belongs here (its detectors are in `detection`).

policy         the policy: one number to set, and a choice of parts by mode
evidence       how likely rewards are under each kernel, size of the signal and noise
two_values     whether rewards have two values only, and how often they are the higher one
surrogate      the Gaussian process believed, and the rounds behind it: the engine's features
closed_forms   formulas of the constants
constants      the constants of a block, in practical and in theory mode
estimators     what the epoch says of rewards, in both modes
looks          second looks at arms that surprised
"""
