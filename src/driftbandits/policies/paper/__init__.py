"""The paper's four policies: the block engine with its constants, inverse propensities and the test of gaps.

opkb, opnn   the policies, on the features of a kernel and of a network
constants    `Constants`, `Variant` and the levels they give
block_constants  constants resolved for a horizon: a part of the engine
features     features of a kernel and of a network: a part of the engine
base         the settings the four share, and the parts made from them
"""
