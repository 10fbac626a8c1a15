"""The OPKB family: epochs, blocks and replays with exchangeable parts.

opkb, opnn    the paper's four policies, on the features of a kernel and of a network
calibrated    `CalibratedOPKB`: one number to set, and a choice of parts by mode
engine        plays epochs, blocks and replays; saves and restores them
parts         what features, constants, estimator, detector and probes must do; the epoch that they read
constants     `Constants`, `Variant`, and the constants of a block as the paper has them
closed_forms  the constants of a block as `CalibratedOPKB` has them
surrogate     the Gaussian process that `CalibratedOPKB` believes in
"""
