"""What to do: a policy, its settings, how long to wait for a reward; as files for `run` and the service."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from driftbandits._util.intervals import t_interval
from driftbandits.logs.log import Log, cell_name
from driftbandits.logs.twins import FIXED, Regrets, Twin
from driftbandits.policies import find_policy
from driftbandits.text import counted, label
from driftbandits.types import Bools, Floats

PATIENT_SHARE = 0.99  # of the rewards that came, which are to be waited for by a policy that learns them in order


@dataclass(frozen=True)
class Waiting:
    """Patience in the log's clock (rounds or seconds) and, where the log says, in seconds; what is missing then.

    missing : mean of the rewards that came later than that; "forget" where none did, or where some never came, of which
        nothing is known: `lost` says how many
    low : low end of the range, where the policy learns from open decisions: patience is then the slowest delay, and
        `missing` is this end if most rewards were that
    """

    patience: float
    seconds: float | None
    missing: float | Literal["forget"]
    lost: int = 0
    low: float | None = None

    @property
    def words(self) -> str:
        """As sentences."""
        rounds = self.seconds != self.patience
        within = f"{self.patience:,.0f} rounds" if rounds else duration(self.patience)
        long = f" ({duration(self.seconds)})" if rounds and self.seconds is not None else ""
        if self.low is not None:
            return self._words_of_open(f"The slowest reward came after {within}{long}")
        came = f"{100 * PATIENT_SHARE:g} % of the rewards came within {within}{long}: wait that long."
        if self.lost:
            silent = counted(self.lost, "older reward")
            return f"{came} {silent} never came, and nothing is known of them; say missing=0 if silence is a failure."
        if self.missing == "forget":
            return f"{came} None came later."
        return f"{came} Those that came later were {self.missing:.3g} on average: take that for a missing one."

    def _words_of_open(self, slowest: str) -> str:
        if self.missing != "forget":
            return (
                f"{slowest}: close decisions then, as missing={self.missing:g}. Until then each counts in part as a "
                f"failure, as its age says. Nothing waits for the slowest, and later rewards are still learned."
            )
        free = f"{slowest}. This policy learns rewards as they come and waits for none: leave patience out."
        if not self.lost:
            return free
        silent = counted(self.lost, "older reward")
        return f"{free} {silent} never came; if silence is a failure, close decisions then as missing={self.low:g}."


def duration(seconds: float) -> str:
    """In the unit that suits it.

    >>> duration(3.0), duration(16_637.0), duration(864_000.0)
    ('3 seconds', '4.6 hours', '10 days')
    """
    for unit, size in (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.3g} seconds"


def waiting_of(log: Log, *, low: float | None = None) -> Waiting | None:
    """What the column `told` says; None without it, or where rewards come at once.

    `low` is the low end of the range for a policy that learns from open decisions, None for others.
    """
    if log.told is None:
        return None
    share = PATIENT_SHARE if low is None else 1.0
    came = ~np.isnan(log.told) & log.known
    delay = (log.told - log.clock)[came]
    patience = float(np.quantile(delay, share, method="inverted_cdf")) if len(delay) else 0.0
    if patience <= 0.0:
        return None
    later = log.reward[came][delay > patience]
    lost = int(np.count_nonzero(~came & (log.clock < log.clock[-1] - patience)))
    missing: float | Literal["forget"] = "forget"
    if low is not None:
        missing = low if np.mean(log.reward[came] == low) > 0.5 else "forget"
    elif len(later) and not lost:
        missing = float(f"{later.mean():.4g}")
    return Waiting(
        patience=patience,
        seconds=patience if log.time is not None else _seconds(log, came, log.told[came], share),
        missing=missing,
        lost=lost,
        low=low,
    )


def _seconds(log: Log, came: Bools, told: Floats, share: float) -> float | None:
    """The same share of the delays, by the times of the rounds in which rewards came."""
    if log.seconds is None:
        return None
    row = np.minimum(np.searchsorted(log.round, told), len(log) - 1)
    found = float(np.quantile(log.seconds[row] - log.seconds[came], share, method="inverted_cdf"))
    return found if found > 0.0 else None


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
        values = {"title": "A twin of the log", "environment": {"name": world}, "policies": players, "seeds": 3}
        return f"# driftbandits run this file\n{yaml.safe_dump(values, sort_keys=False, allow_unicode=True)}"

    def service_file(self, log: Log, name: str) -> str:
        """The body with which the service makes this experiment; its patience is in seconds, where the log has them."""
        points = [None] * len(log.names) if log.arms is None else log.arms.points.tolist()
        waiting = self.waiting
        patient = waiting is not None and waiting.seconds is not None
        if waiting is not None and waiting.low is not None and waiting.missing == "forget":
            patient = False  # it waits for nothing then
        body = {
            "name": name,
            "arms": [{"name": own, "features": point} for own, point in zip(log.names, points, strict=True)],
            "policy": self.policy,
            "settings": dict(self.settings),
            "segments": None if log.segment is None else list(log.segment_names),
            "reward_range": list(self.reward_range),
            "patience": waiting.seconds if waiting is not None and patient else None,
            "missing": waiting.missing if waiting is not None and patient else None,
        }
        return json.dumps(body, indent=2, ensure_ascii=False) + "\n"


def recommend(log: Log, regrets: Regrets, twin: Twin, told: Log | None = None) -> Recommendation:
    """Who has the least regret in the twins, a learner or the best fixed arm, and whether learning pays at all.

    Beside the fixed arm stands the best learner that would notice a change. How long to wait is read from `told`, which
    has the rows without a reward too.
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
    limits = log.reward_range or (twin.low, twin.high)
    low = limits[0] if find_policy(player.policy).learns_open_decisions else None
    return Recommendation(
        policy=player.policy,
        settings=player.settings,
        reward_range=limits,
        why=why,
        fixed_arm=fixed if still else None,
        waiting=None if told is None else waiting_of(told, low=low),
        open=not (gain.low > 0 or gain.high < 0),
    )


def fixed_words(log: Log, regrets: Regrets) -> str:
    """The arm of who never changes it; with segments, that of each."""
    size = len(log.names)
    if log.segment is None:
        return log.names[regrets.fixed]
    best = [next(cell for cell in regrets.order if cell // size == k) for k in range(len(log.segment_names))]
    return ", ".join(cell_name(log, cell) for cell in best)
