"""
Policies side by side
=====================

One run is one run. ``compare`` plays several policies on several seeds, in the same worlds and with the same noise,
and says how sure the differences are.
"""

import driftbandits as db

world = ("switching", {"dimension": 2, "kind": "flip", "switches": [500], "horizon": 1_000, "size": 30})
found = db.compare(
    {
        "AutoBandit": db.AutoBandit,
        "CalibratedOPKB": db.CalibratedOPKB,
        "window of 300": (db.SlidingWindowGPUCB, {"window": 300}),
        "never forgets": db.GPUCB,
    },
    {"one switch": world},
    seeds=5,
    jobs=1,
)
print(found)

# %%
# Bands are one standard error. Where policies report changes, a second panel has the rounds in which they did.

figure = found.plot()


# %%
# The tables behind it are DataFrames.

print(found.summary[["policy", "regret", "standard_error", "behind"]].round(1))
