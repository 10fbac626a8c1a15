"""`AutoBandit` and its parts: what only this policy uses belongs here.

priors       what the reward function may look like: one prior per length scale
beliefs      the hypotheses: Gaussian posteriors in a stack, each with its own start and rate of forgetting
mixture      their weights, births, merging
samples      posterior samples of the weightiest hypotheses, and how often each arm is their best
vigilance    how often to look at arms that look worse, in case they are not any more
watch        when to say that the world has changed
carrying     what the hypotheses believe of new arms
two_valued   whether rewards are successes and failures, and what was counted of them
rate_units   the coordinates in which chances of success are learned
explanation  what it believes, for people
"""
