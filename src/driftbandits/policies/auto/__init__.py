"""`AutoBandit` and its parts.

policy         the policy, and the law it plays
learning       how a reward updates the beliefs
hypotheses     priors of the reward function, their features, rewards of two values
beliefs        the hypotheses: Gaussian posteriors in a stack, each with its own start and rate of forgetting
mixture        their weights, births, merging
samples        posterior samples of the heaviest hypotheses, and how often each arm is the best in them
probing        how often inferior arms are re-tested, and how new arms are tried
batching       several rewards learned in one step
change_report  when a change is reported
arm_migration  posteriors for new arms
explanation    `explain()`

With contexts:

contextual         the policy: what differs
relevance          which columns matter, and how smoothly
request_priors     priors of functions of arms and requests
remembered         the latest rewards, to learn anew from
change_part        for which requests rewards have changed
request_migration  posteriors for new arms
"""
