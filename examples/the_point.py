"""Why forget? One run in a world that changes three times, and the picture of it on the front page.

python examples/the_point.py docs/figures/the-point.png
"""

import sys

import numpy as np
from matplotlib.figure import Figure

import driftbandits as db

SWITCHES, ROUNDS, SMOOTHED = (1_500, 2_700, 3_900), 5_000, 50
PEAKS, HEIGHTS = (7.0, 13.0, 9.0, 15.0), (0.8, 0.7, 0.8, 0.75)  # where the best price lies, and what it brings
BLUE, ORANGE, GREY = "#1d78b8", "#e07b00", "#8a8f98"


def shop() -> db.environments.Piecewise:
    """Twelve prices; what they bring changes without notice."""
    prices = np.linspace(5, 16, 12)
    values = [height * np.exp(-(((prices - peak) / 3) ** 2)) for peak, height in zip(PEAKS, HEIGHTS, strict=True)]
    arms = db.ArmSet(prices[:, None], names=[f"{price:.0f} EUR" for price in prices])
    noise = db.environments.TruncatedGaussianNoise(0.2)
    return db.environments.Piecewise(arms, values, switches=SWITCHES, horizon=ROUNDS, noise=noise)


def smoothed(rewards: db.Floats) -> db.Floats:
    """The mean of the last rounds, at every round."""
    sums = np.cumsum(np.concatenate([[0.0], rewards]))
    ends = np.arange(1, len(sums))
    starts = np.maximum(ends - SMOOTHED, 0)
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts))


def draw(world: db.environments.Piecewise, auto: db.Trace, never: db.Trace) -> Figure:
    """Rewards over time, the changes of the world, and when AutoBandit found them."""
    figure = Figure(figsize=(7.2, 3.5), dpi=180, layout="constrained")
    axes = figure.subplots()
    axes.plot(world.best(0, ROUNDS), color=GREY, linewidth=5, alpha=0.35, solid_capstyle="butt")
    axes.plot(smoothed(never.reward), color=ORANGE, linewidth=1.6)
    axes.plot(smoothed(auto.reward), color=BLUE, linewidth=1.6)
    axes.set(xlim=(0, ROUNDS), ylim=(-0.08, 1.0), xlabel="round", ylabel=f"reward, mean of {SMOOTHED} rounds")
    for switch in SWITCHES:
        axes.axvline(switch, color="black", linewidth=1, linestyle=(0, (1, 2)))
        axes.text(switch, 1.0, "the world changes", ha="center", va="bottom", fontsize=9.5)
    found = [change.round for change in auto.changes]
    axes.plot(found, np.full(len(found), -0.03), "^", color=BLUE, markersize=7, clip_on=False)
    axes.text(90, 0.89, "the best there is", color="#666b73", fontsize=9.5)
    axes.text(90, 0.58, "AutoBandit", color=BLUE, fontsize=11.5, weight="bold")
    axes.text(90, 0.49, "▲ where it found a change", color=BLUE, fontsize=9.5)
    axes.text(90, 0.24, "GP-UCB,\nnever forgets", color=ORANGE, fontsize=11.5, weight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    world = shop()
    auto, never = (db.simulate(kind(world.arms, seed=0), world, seed=0) for kind in (db.AutoBandit, db.GPUCB))
    found = ", ".join(f"{change.round:,}" for change in auto.changes)
    print(f"AutoBandit earned {auto.reward.sum():,.0f}; it found changes in rounds {found}")
    print(f"GP-UCB, which never forgets, earned {never.reward.sum():,.0f}")
    for path in sys.argv[1:]:
        draw(world, auto, never).savefig(path)
