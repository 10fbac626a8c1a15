"""What to do: a policy and its settings, as files that `driftbandits run` and the service read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandits.intervals import t_interval
from driftbandits.logs.cells import cell_name
from driftbandits.logs.log import Log
from driftbandits.logs.twins import FIXED, Regrets, Twin
from driftbandits.logs.waiting import Waiting
from driftbandits.showing import label


@dataclass(frozen=True)
class Recommendation:
    """A policy with its settings and range of rewards, why, and the arm to play always where that lost the least.

    Where it did, the policy is the best of those that would notice a change. `open` says that the twins differ too much
    to tell whether learning pays.
    """

    policy: str
    settings: Mapping[str, Any]
    reward_range: tuple[float, float]
    why: str
    fixed_arm: str | None
    waiting: Waiting | None
    open: bool = False

    def words(self) -> str:
        """What is recommended, in a sentence."""
        settings = ", ".join(f"{name}={value}" for name, value in self.settings.items())
        policy = f"{self.policy}({settings})"
        until = " until a longer log tells more" if self.open else ""
        if self.fixed_arm is None:
            return f"Recommended{until}: {policy}{', which lost the least' if self.open else ''}."
        return (
            f"Recommended{until}: always {label(self.fixed_arm)}, which lost the least, and look again when the log is "
            f"longer; or {policy}, which lost more and would notice a change."
        )

    @property
    def patience(self) -> float | None:
        """How long to wait for a reward, in the log's clock; None where the log does not say."""
        return None if self.waiting is None else self.waiting.patience

    def run_file(self, world: str) -> str:
        """A file for `driftbandits run`: the recommended policy beside one that never forgets, in a twin of the log."""
        import yaml

        players: list[Any] = [{"name": self.policy, "label": "recommended", "settings": dict(self.settings)}]
        players += [name for name in ("GPUCB", "Uniform") if name != self.policy]
        values = {
            "title": "A twin of the log",
            "environment": {"name": world},
            "policies": players,
            "seeds": 3,
        }
        return f"# driftbandits run this file\n{yaml.safe_dump(values, sort_keys=False, allow_unicode=True)}"

    def service_file(self, log: Log, name: str) -> str:
        """The body with which the service makes this experiment; its patience is in seconds, where the log has them."""
        points = [None] * len(log.names) if log.arms is None else log.arms.points.tolist()
        patient = self.waiting is not None and self.waiting.seconds is not None
        body = {
            "name": name,
            "arms": [{"name": own, "features": point} for own, point in zip(log.names, points, strict=True)],
            "policy": self.policy,
            "settings": dict(self.settings),
            "segments": None if log.segment is None else list(log.segment_names),
            "reward_range": list(self.reward_range),
            "patience": self.waiting.seconds if self.waiting is not None and patient else None,
            "missing": self.waiting.missing if self.waiting is not None and patient else None,
        }
        return json.dumps(body, indent=2, ensure_ascii=False) + "\n"


def recommend(log: Log, regrets: Regrets, twin: Twin, waiting: Waiting | None = None) -> Recommendation:
    """Who has the least regret in the twins, a learner or the best fixed arm, and whether learning pays at all.

    Beside the fixed arm stands the best learner that would notice a change.
    """
    ranked = regrets.ranked()
    learners = [name for name in ranked if name != FIXED]
    best, fixed = learners[0], fixed_words(log, regrets)
    player = regrets.players[best]
    gain = t_interval(np.subtract(regrets.by_twin[FIXED], regrets.by_twin[best]))
    lost, always = (regrets.interval(name).estimate for name in (best, FIXED))
    what = "Learning" if player.policy == "GPUCB" else "Adapting"  # that one never forgets
    if gain.low > 0:
        why = f"{what} pays: {best} loses {lost:.3g} per round in the twins, always {fixed} {always:.3g}."
    elif gain.high < 0:
        why = f"{what} does not pay: always {fixed} loses {always:.3g} per round in the twins, {best} {lost:.3g}."
    else:
        (less, first), (more, second) = sorted([(lost, best), (always, f"always {fixed}")])
        why = (
            f"Whether {what.lower()} pays is open: {first} loses {less:.3g} per round in the twins, {second} "
            f"{more:.3g}, but not in all of them alike."
        )
    still = ranked[0] == FIXED
    if still:
        player = next(regrets.players[name] for name in learners if regrets.players[name].policy != "GPUCB")
    return Recommendation(
        policy=player.policy,
        settings=player.settings,
        reward_range=log.reward_range or (twin.low, twin.high),
        why=why,
        fixed_arm=fixed if still else None,
        waiting=waiting,
        open=not (gain.low > 0 or gain.high < 0),
    )


def fixed_words(log: Log, regrets: Regrets) -> str:
    """The arm of who never changes it; with segments, that of each."""
    size = len(log.names)
    if log.segment is None:
        return log.names[regrets.fixed]
    best = [next(cell for cell in regrets.order if cell // size == k) for k in range(len(log.segment_names))]
    return ", ".join(cell_name(log, cell) for cell in best)
