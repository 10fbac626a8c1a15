"""
A drift detector on a stream
============================

``DriftDetector`` watches any stream of numbers. You say how often it may ever raise a false alarm; it needs to know
nothing about the numbers' distribution.
"""

import matplotlib.pyplot as plt
import numpy as np

import driftbandits as db

# %%
# Response times with a heavy tail. After 1,500 of them everything gets a fifth slower.

rng = np.random.default_rng(0)
times = rng.lognormal(4.0, 0.4, size=2_500)
times[1_500:] *= 1.2

detector = db.DriftDetector(false_alarm=0.01)
alarms = []
for number, time in enumerate(times):
    if detector.update(time):
        alarms.append(number)
        print(f"alarm at {number:,}: numbers {detector.kind} since about {detector.since:,}")

# %%
# By eye one would hardly see it.

figure, axes = plt.subplots(layout="constrained")
axes.plot(times, ".", color="#8a8f98", markersize=2)
axes.axvline(1_500, color="black", linestyle=":", label="a fifth slower")
for alarm in alarms:
    axes.axvline(alarm, color="#e07b00", label="alarm")
axes.set(xlabel="number", ylabel="milliseconds", ylim=(0, 250))
axes.legend(loc="upper left")
plt.show()
