"""The block engine that the OPKB family shares: epochs, blocks and replays, whatever the parts handed to it.

engine   plays epochs, blocks and stretches
parts    what features, constants, estimator, detector and looks must do
epoch    what was played and told since the last restart
design   laws by optimal design
saving   the engine as a state, and back
"""
