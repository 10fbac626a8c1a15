"""What every policy shares, or several families do: what knows no single algorithm belongs here.

base         `Policy`, the user's side: ask, tell, forget, look, save
hooks        the author's side: the hooks that a policy writes
guard        one call at a time, and a mark where an exception left a policy half changed
inputs       sizes, allowed arms, ids and rewards as callers pass them
settings     settings by name: the common ones, and which a class knows
scale        the reward range in the user's units, [-1, 1] inside
laws         what a law must be
waiting      how long rewards are waited for, and what one that does not come means
pending      decisions asked and not yet told
closing      what becomes of decisions between asking and learning
order        rewards told that wait for earlier ones
delays       whether how late rewards come depends on what they are
spread       whether rewards fill the declared range
changes      the changes found
saving       a whole policy as a state, and back
arms_change  which of new arms are which of the old, and what the kernel says of the others
carrying     a policy that goes on with other arms
renumbered   numbers that arms had when a decision was made
optimistic   policies that play the arm with the largest index
window       the latest rewards
sized        forgetting forms by window, period or discount
lengthscales length scales to try
network      settings of a network
"""
