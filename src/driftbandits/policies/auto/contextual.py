"""AutoBandit with contexts: what an arm earns depends on the request.

The hypotheses about change, their weights, samples, probes and records are those of `AutoBandit` with very many arms:
Gaussians over coordinates in which rewards are linear (`request_priors`). What differs:

- Which columns matter, and how smoothly, is chosen from the rewards told (`relevance`), after 40 of them and whenever
  they have doubled, and again after a recorded change. Then everything is learned anew from the latest rewards.
- The law is that of the samples at the request. Probes go by mean rewards over the latest requests.
- A recorded change names the part of the requests for which rewards moved (`change_part`).
- Rewards are learned as plain numbers, whatever their distribution; decisions without a reward are no data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from driftbandits import state as states
from driftbandits._util.guard import guarded
from driftbandits._util.linalg import first_largest
from driftbandits._util.seeding import stream
from driftbandits.arms import ArmSet
from driftbandits.arms.contexts import Contexts, places_of, scale_of, standardised
from driftbandits.errors import InputError
from driftbandits.policies.algorithm import freeze
from driftbandits.policies.arm_migration import ArmsChange
from driftbandits.policies.auto.batching import RewardBatch, observe_all
from driftbandits.policies.auto.beliefs import Beliefs, Forecast, moments
from driftbandits.policies.auto.change_part import Part, Told, find_part
from driftbandits.policies.auto.change_report import ChangeReport, RegimeChange
from driftbandits.policies.auto.doubts import Doubts
from driftbandits.policies.auto.echoes import MODELS, WHITE, Before, Memory
from driftbandits.policies.auto.explanation import Explanation
from driftbandits.policies.auto.exposures import Exposures
from driftbandits.policies.auto.learning import BIRTH_DEVIATIONS, FAR_TOO_SMALL, LOCAL_BIRTH_DEVIATIONS, Outlook
from driftbandits.policies.auto.mixture import LARGEST_SQUARE, Mixture
from driftbandits.policies.auto.policy import SAMPLES_PER_HYPOTHESIS, AutoBandit
from driftbandits.policies.auto.probing import Probing, Trial, plays_of_a_trial
from driftbandits.policies.auto.relevance import Smoothness, choose, lacks_a_part
from driftbandits.policies.auto.remembered import Remembered
from driftbandits.policies.auto.request_migration import migrate_request_hypotheses
from driftbandits.policies.auto.request_priors import RequestPriors, RequestReadings
from driftbandits.policies.auto.samples import ManySamples
from driftbandits.policies.auto.successes import News, TwoValued
from driftbandits.policies.decisions import Feedback, Row
from driftbandits.policies.inspection import around, cut
from driftbandits.policies.open_contexts import OpenContexts
from driftbandits.types import Bools, Floats, Ints

CONTEXT_RANK = 200
FIRST_CHOICE = 40  # rewards, after which the columns that matter are first chosen
REQUESTS_SHOWN = 16  # of the latest, over which laws without a context are averaged
REQUESTS_KEPT = 256
_CHUNK = 32  # rewards learned anew in one step
_AT_FIRST = (0.2, 0.02, 0.002)  # variances of arms before anything is chosen
REWARDS_CHECKED = 512  # of the latest, for a column that did not matter before; each time there are as many more
_UNKNOWN_NOISE = 1.0
LEAST_OTHERS = 16  # rewards that differ from the most frequent one, before anything can be chosen
_NOISE_CHECKED = tuple(2**k for k in range(3, 20))  # rewards told, until columns are chosen: see `_mend_noise`


class RequestSamples(ManySamples):
    """Samples in the coordinates, read at the request entered."""

    def __init__(self, beliefs: Beliefs, number: int, generator: np.random.Generator) -> None:
        super().__init__(beliefs, number, generator)
        self._at = beliefs.priors.rows

    def frequencies(self, weights: Floats, mask: Bools | None = None) -> Floats:
        """How often each arm is the best (allowed) one for the request, weighted by the hypotheses' weights, (N,)."""
        read = self.rewards()[:, 1:]
        best = (read if mask is None else np.where(mask, read, -np.inf)).argmax(axis=2)
        votes = (self._shares(weights) / self._number).repeat(self._number)
        return np.asarray(np.bincount(best.ravel(), votes, self._size), dtype=np.float64)

    def best(self, weights: Floats, mask: Bools | None = None) -> int:
        """The (allowed) arm of the highest expected reward for the request."""
        mean = self.mean(weights)
        return first_largest(mean if mask is None else np.where(mask, mean, -np.inf))

    def expected(self, weights: Floats) -> Floats:
        """Mean expected rewards over the latest requests, (N,)."""
        with self._beliefs.priors.rows.average():  # type: ignore[union-attr]
            return self.mean(weights)

    def seek(self, weights: Floats) -> None:
        """Nothing to do: all arms are read for every request."""


class ContextualAutoBandit(AutoBandit):
    """`AutoBandit` where each request has a context: `AutoBandit(arms, contexts=...)` builds it.

    Which columns matter is learned: those that do not are left out, and all of them where contexts say nothing. So
    useless columns cost little. `ask(context=...)` wants a context for every decision; the open decision keeps it.
    `law`, `estimate`, `interval` and `explain` take one too, and speak of the latest requests without.

    Rewards are plain numbers: rewards of two values are no case of their own, as in `AutoBandit`, and decisions whose
    rewards are late are not counted in part; with `patience`, rewards are learned in the order asked. Noise is taken to
    be independent from reward to reward. Now and then, ever more rarely, a reward takes up to a second, when all is
    learned anew from the latest 4,096.

    Parameters
    ----------
    contexts : the columns, or size, of each request's context
    kernel, floor : see `AutoBandit`
    rank : number of coordinates of the reward function

    >>> arms = ArmSet([[0.0], [1.0]], names=["left", "right"])
    >>> policy = AutoBandit(arms, contexts=Contexts(device=["mobile", "desktop"]), seed=0)
    >>> for now in range(300):
    ...     device = ["mobile", "desktop"][now % 2]
    ...     choice = policy.ask(context={"device": device})
    ...     policy.tell(choice, 0.5 if (choice.name == "left") == (device == "mobile") else 0.1)
    >>> policy.estimate(context={"device": "mobile"}).round(1).tolist()
    [0.5, 0.1]
    """

    contexts: Contexts
    _latest_size: int
    behaviour = 1
    learns_open_decisions = False

    def __init__(
        self,
        arms: ArmSet,
        *,
        contexts: Contexts,
        kernel: Any = "auto",
        floor: float = 0.001,
        rank: int = CONTEXT_RANK,
        **common: Any,
    ) -> None:
        if not isinstance(contexts, Contexts):
            raise InputError(f"contexts must be a db.Contexts, got {type(contexts).__name__}; as in db.Contexts(8)")
        self.contexts = contexts
        super().__init__(arms, kernel=kernel, floor=floor, rank=rank, **common)
        self._places = places_of(contexts.parts, contexts.width)
        self._request: Floats | None = None  # standardised codes of the request asked for, (1, width)
        self._codes: Floats | None = None  # its codes

    def _check_memory(self) -> None:
        """What is held depends on the rank alone."""

    # --- requests -----------------------------------------------------------------------------------------------

    def _enter(self, codes: Floats | None) -> None:
        self._codes = codes
        self._request = None
        self._known_law = None

    def _read_entered(self) -> None:
        """Let the priors read the request that was asked for."""
        if self._codes is not None and self._request is None:
            self._request = standardised(self._codes[None], self._centre, self._spread)
        self._rows.enter(self._request)

    @property
    def _rows(self) -> RequestReadings:
        return self._priors.rows

    def _law(self) -> Floats:
        if self._codes is not None:
            self._read_entered()
            return freeze(self._compose(None))
        if self._known_law is None:
            self._known_law = freeze(self._mean_law(None))
        return self._known_law

    def _law_within(self, mask: Bools) -> tuple[Floats, bool]:
        if self._codes is None:
            return self._mean_law(mask), not bool(mask.all())
        self._read_entered()
        return super()._law_within(mask)

    def _mean_law(self, mask: Bools | None) -> Floats:
        """The mean of the laws of some of the latest requests."""
        some = self._latest[: self._latest_size][-REQUESTS_SHOWN:]
        if not len(some):
            self._rows.enter(None)
            return self._compose(mask)
        different, counts = np.unique(standardised(some, self._centre, self._spread), axis=0, return_counts=True)
        laws = []
        for request in different:
            self._rows.enter(request[None])
            laws.append(self._compose(mask))
        return np.asarray(counts / counts.sum() @ np.array(laws)) if len(laws) > 1 else laws[0]

    def _stamp_within(self, mask: Bools | None) -> tuple[int, int]:
        self._read_entered()
        return super()._stamp_within(mask)

    def _drawn(self, arms: Sequence[int], counted: bool) -> None:
        if self._codes is None:
            raise InputError("a decision needs a context: pass context=, or contexts= for several")
        self._open.add(self.rounds - 1, self._codes)
        self._keep_latest(self._codes)
        self._rows.see()

    def _keep_latest(self, codes: Floats) -> None:
        if self._latest_size == len(self._latest):
            self._latest[:REQUESTS_KEPT] = self._latest[-REQUESTS_KEPT:]
            self._latest_size = REQUESTS_KEPT
        self._latest[self._latest_size] = codes
        self._latest_size += 1

    def _lose(self, rows: npt.NDArray[np.void]) -> None:
        for ident in rows["id"].tolist():
            self._open.take(ident)

    # --- learning -----------------------------------------------------------------------------------------------

    def _start(self, horizon: int | None) -> None:
        width = self.contexts.width
        self._centre, self._spread = np.zeros(width), np.ones(width)
        self._anchors = np.zeros((1, width))
        nothing = (math.inf,) * len(self.contexts.parts)
        self._models = [
            Smoothness(nothing, arms=size, requests=1.0, joint=1.0, noise=_UNKNOWN_NOISE) for size in _AT_FIRST
        ]
        self._open = OpenContexts(width)
        self._latest = np.zeros((2 * REQUESTS_KEPT, width))
        self._latest_size = 0
        self._remembered = Remembered(width)
        self._told, self._next_choice, self._changed = 0, FIRST_CHOICE, 0
        self._build()
        self._clock = self.rounds
        self._mixture.start(self.rounds)
        self._samples.choose(self._mixture.weights(), anew=True)
        self._refresh()

    def _build(self) -> None:
        priors = self._priors = RequestPriors(
            self.arms, self._models, self._anchors, self._places, auto=self.kernel == "auto", rank=self.rank
        )
        latest = self._latest[: self._latest_size][-REQUESTS_KEPT:]
        if len(latest):
            priors.rows.see_all(standardised(latest, self._centre, self._spread))
        size = len(self.arms)
        self._standing = priors.representatives
        white = MODELS[: WHITE + 1]
        self._beliefs = Beliefs(priors, Mixture.capacity(priors.count, models=white))
        self._mixture = Mixture(self._beliefs, models=white)
        self._samples = RequestSamples(
            self._beliefs, SAMPLES_PER_HYPOTHESIS, stream(self.seed, "samples", self._told_now())
        )
        self._probing = Probing(priors, size, together=size)
        self._change_report = ChangeReport(self._beliefs, size)
        self._trial = Trial(size)
        self._two_valued = TwoValued(size)
        self._two_valued.over = True
        self._exposures = Exposures(size)
        self._doubts = Doubts(size)
        self._batch = RewardBatch()
        self._memory = Memory(size)
        self._since_tidy, self._renewal_due = 0, False
        self._glances = np.zeros(size)
        self._known_arms = {}
        self._known_law = self._known_mean = None

    def _told_now(self) -> int:
        return self._told

    def _learn(self, feedback: Feedback) -> None:
        for row, reward in feedback.rows():
            self._learn_one(row, reward)

    def _learn_one(self, row: Row, reward: float) -> None:
        codes = self._open.take(row.id)
        self._remembered.add(row.id, row.arm, reward, codes)
        self._told += 1
        self._request = None  # other pairs are entered
        self._rows.enter(standardised(codes[None], self._centre, self._spread))
        self._learn_now(row, reward, News.NONE)
        if not self._ready and self._told in _NOISE_CHECKED:
            self._mend_noise()
        if self._told >= self._next_choice:
            self._next_choice = self._told + max(self._told - self._changed, FIRST_CHOICE)
            self._choose_columns(anew=False)
        elif self._ready and self._told % REWARDS_CHECKED == 0 and self._lacks_a_column():
            self._choose_columns(anew=True)
        self._refresh()

    @property
    def _ready(self) -> bool:
        """Whether anything was chosen yet."""
        return self._models[0].noise != _UNKNOWN_NOISE

    def _mend_noise(self) -> None:
        """Learn anew what was learned while the noise was taken for far too small."""
        noise = float(self._mixture.weights() @ self._beliefs.scatter)
        if noise > FAR_TOO_SMALL * self._beliefs.first_noise:
            self._learn_all_anew(noise, self._remembered.since(0))

    def _outlook(self, row: Row) -> Outlook:
        """Mean rewards over the latest requests, but those of the played and of the best arm for this request."""
        means = self._samples.mean(self._mixture.weights())
        best = row.tag - 1 if row.tag else first_largest(means)
        expected = self._expected().copy()
        expected[[row.arm, best]] = means[[row.arm, best]]
        return Outlook(row.arm, best, expected)

    def _forecast(self, row: Row, reward: float, before: Before) -> Forecast:
        """As in `Learning`; what the leader expects is read from the forecast, which is made anew only after births."""
        beliefs, leader = self._beliefs, self._mixture.leader()
        forecast = beliefs.forecast(row.arm, before)
        residual = reward - forecast.mean.item(leader)
        variance = forecast.variance.item(leader) + beliefs.noise.item(leader)
        self._remembered.note(residual, variance)
        deviations = abs(residual) / math.sqrt(variance)
        if deviations > BIRTH_DEVIATIONS:
            self._renewal_due = False
            self._mixture.renew(row.id)
            if deviations > LOCAL_BIRTH_DEVIATIONS and self._had_reward(row.arm):
                self._mixture.suspect(row.arm, self._probing.chance(row.arm, self._clock), row.id)
        elif self._renewal_due:
            self._renew(row.id)
        else:
            return forecast
        return beliefs.forecast(row.arm, before)

    def _find_change(self) -> None:
        if not self._ready:
            return  # what the noise is like is not known yet
        report = self._change_report
        before = report.epoch
        with self._rows.average():
            super()._find_change()
        if report.epoch > before:
            self._changed, self._next_choice = self._told, self._told + FIRST_CHOICE

    def _report(self, found: RegimeChange, part: str = "") -> None:
        moved = self._moved_part(found)
        if moved is not None:
            part = moved.words
            found = replace(found, named=moved.arms, named_before=moved.before, named_after=moved.after)
        super()._report(found, part)

    def _moved_part(self, found: RegimeChange) -> Part | None:
        """For which requests rewards were not as expected since the change."""
        told = self._remembered
        some = told.since(found.birth)
        since = Told(told.codes[some], told.arms[some], told.rewards[some], told.residuals[some], told.variances[some])
        return find_part(since, self._latest[: self._latest_size], self.contexts)

    def _settled_means(self, weights: Floats) -> Floats:
        return self._samples.expected(weights)

    def _lacks_a_column(self) -> bool:
        told = self._remembered
        some = told.since(self._change_report.began)
        some = slice(max(some.start, some.stop - REWARDS_CHECKED), some.stop)
        requests = standardised(told.codes[some], self._centre, self._spread)
        return lacks_a_part(requests, told.arms[some], told.rewards[some], self.contexts, self._models[0])

    def _choose_columns(self, *, anew: bool) -> None:
        """Choose the columns that matter, and learn anew if they are others than before. Since the last change, and if
        `anew` lately too, the functions may be others.
        """
        told, began = self._remembered, self._change_report.began
        some = told.since(0)
        centre, spread = scale_of(told.codes[some], self.contexts.scaled)
        requests = standardised(told.codes[some], centre, spread)
        arms, rewards = told.arms[some], told.rewards[some]
        if len(rewards) - np.unique(rewards, return_counts=True)[1].max() < LEAST_OTHERS:
            return
        recent = anew & (np.arange(len(arms)) >= len(arms) - REWARDS_CHECKED)
        epochs = (told.ids[some] >= began).astype(np.int64) + recent
        now = self._models[0] if self._ready else None
        best = choose(requests, arms, rewards, self.contexts, epochs=epochs, everything=False, now=now)
        if best is now:
            return
        nothing = (math.inf,) * len(self.contexts.parts)
        models = [best] if best.chosen else []
        if len(best.chosen) < len(self.contexts.parts):
            models.append(choose(requests, arms, rewards, self.contexts, epochs=epochs, everything=True))
        models.append(Smoothness(nothing, arms=best.arms, requests=1.0, joint=1.0, noise=best.noise))
        same = len(models) == len(self._models) and all(a.is_near(b) for a, b in zip(models, self._models, strict=True))
        if same:
            return
        self._models, self._centre, self._spread = models, centre, spread
        step = max(len(requests) // 96, 1)
        self._anchors = requests[::step][:96].copy()
        self._learn_all_anew(best.noise, told.since(began))

    def _learn_all_anew(self, noise: float, some: slice) -> None:
        """Build everything for the present models, and learn the rewards remembered, in chunks."""
        report, probing, clock = self._change_report, self._probing, self._clock
        trial, doubts, now = self._trial, self._doubts, self._clock
        self._build()
        self._change_report.regime, self._change_report.began = report.regime, report.began
        self._change_report.epoch = report.epoch
        self._trial, self._doubts = trial, doubts
        self._probing.load(states.Reader({**probing.export(), "kind": -1}), rounds=clock)
        told = self._remembered
        ids, arms, rewards = told.ids[some], told.arms[some], told.rewards[some]
        if len(rewards):
            apart = np.square(rewards - rewards.mean()) / max(float(rewards.var()), 1e-12)
            self._mixture.tails.know(np.minimum(apart, LARGEST_SQUARE).tolist())
        requests = standardised(told.codes[some], self._centre, self._spread)
        first = int(ids[0]) if len(ids) else now
        self._beliefs.expect_noise(noise, 16.0)
        self._mixture.start(min(first, report.regime))  # nothing new: no change is to be reported for it
        self._clock = first
        for start in range(0, len(ids), _CHUNK):
            part = slice(start, start + _CHUNK)
            self._learn_chunk(ids[part], arms[part], rewards[part], requests[part])
        self._beliefs.pass_time(max(now - self._clock, 0))
        self._mixture.pass_time(max(now - self._clock, 0), now - 1)
        self._clock = now
        self._beliefs.flush()
        self._samples.choose(self._mixture.weights(), anew=True)
        self._invalidate()

    def _learn_chunk(self, ids: Ints, arms: Ints, rewards: Floats, requests: Floats) -> None:
        latest = np.maximum.accumulate(np.append(self._clock, ids + 1))
        passed = np.diff(latest)
        self._mixture.pass_time(int(passed.sum()), int(latest[-1]) - 1)
        self._mixture.renew_in_time(int(latest[-1]) - len(ids))
        self._rows.enter(requests, arms)
        joint = observe_all(self._beliefs, np.arange(len(ids)), passed, rewards, reference=self._mixture.reference())
        self._mixture.update_all(joint.likelihood, np.square(joint.scores))
        self._mixture.prune()
        self._clock = int(latest[-1])

    # --- beliefs ------------------------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Read the request entered, or the average of the latest."""
        if self._codes is None:
            with self._rows.average():
                yield
        else:
            self._read_entered()
            yield

    def _estimate(self) -> Floats:
        with self._reading():
            return self._samples.mean(self._mixture.weights())

    def _interval(self) -> tuple[Floats, Floats]:
        with self._reading():
            return around(*moments(self._beliefs, self._mixture.weights()))

    def _glimpse(self, arms: Ints) -> Sequence[Floats]:
        with self._reading():
            weights = self._mixture.weights()
            return [self._samples.mean(weights, arms), *around(*moments(self._beliefs, weights, arms))]

    @guarded
    def explain(self, *, context: Any = None) -> Explanation:
        """The current beliefs in a few lines: print them, or read the fields.

        Parameters
        ----------
        context : of a request; without one, estimates are means over the latest

        Returns
        -------
        Explanation
        """
        self._begin_once()
        codes = self._codes_of(context)
        with self._entered(codes):
            estimate, interval = self._estimate(), cut(self._interval())
        kinds = self._mixture.kinds()
        latest = self._latest[: self._latest_size]
        columns = {
            name: float(sum(kinds[kind] for kind, model in enumerate(self._priors.of_requests) if part in model.chosen))
            * bool(np.any(np.ptp(latest[:, place], axis=0) > 0.0) if len(latest) else False)
            for part, (name, place) in enumerate(self.contexts.parts)
        }
        return self._explained(estimate, interval, columns)

    # --- state --------------------------------------------------------------------------------------------------

    def _carry(self, old: Self, change: ArmsChange) -> None:
        for name in ("_centre", "_spread", "_anchors", "_models", "_latest_size", "_told", "_changed", "_next_choice"):
            setattr(self, name, getattr(old, name))
        self._open, self._latest = old._open.copy(), old._latest.copy()
        self._remembered = old._remembered.renumbered(change.target)
        self._build()
        self._clock, self._since_tidy, self._renewal_due = old._clock, old._since_tidy, old._renewal_due
        report = old._change_report
        noise = float(old._mixture.weights() @ old._beliefs.scatter)
        moved = migrate_request_hypotheses(old._beliefs, old._mixture, old._priors, self._priors, change)
        if moved is None:
            self._change_report.regime, self._change_report.began = report.regime, report.began
            self._change_report.epoch = report.epoch
            self._learn_all_anew(noise, self._remembered.since(report.began))
        else:
            self._beliefs.load(states.Reader(moved.beliefs), rounds=self.rounds)
            self._mixture.load(states.Reader(moved.mixture), rounds=self.rounds)
            self._samples.draw_as(old._samples, moved.places)
            if (moved.places < 0).any():  # hypotheses that were sampled may be gone
                self._samples.choose(self._mixture.weights(), anew=False)
        self._probing.seen = change.carry(old._probing.seen, float(old._clock))
        self._trial.load(states.Reader({"left": change.carry(old._trial.left, 0)}))
        self._trial.begin(change.added, plays_of_a_trial(noise))
        self._doubts = old._doubts.renumbered(change.source)
        self._refresh()
        kept = {name: change.carry(report.export()[name], 0.0) for name in ("before", "latest")}
        now = {name: np.where(change.source >= 0, values, self._expected()) for name, values in kept.items()}
        self._change_report.load(states.Reader({**report.export(), **now}), rounds=self.rounds)

    def _settings(self) -> dict[str, Any]:
        return {**super()._settings(), "contexts": self.contexts.to_dict()}

    def _shown(self) -> dict[str, Any]:
        return {**super()._settings(), "contexts": self.contexts}

    def _export(self) -> dict[str, Any]:
        self._open.keep(self._awaited()["id"])
        requests = {
            "centre": self._centre.copy(),
            "spread": self._spread.copy(),
            "anchors": self._anchors.copy(),
            "models": [model.export() for model in self._models],
            "open": self._open.export(),
            "latest": self._latest[: self._latest_size].copy(),
            "told": self._told,
            "next_choice": self._next_choice,
            "changed": self._changed,
            "remembered": self._remembered.export(),
            **self._rows.export(),
        }
        return {**super()._export(), "requests": requests}

    def _import(self, state: states.Reader) -> None:
        requests, width = state.reader("requests"), self.contexts.width
        self._centre = requests.array("centre", np.float64, (width,))
        self._spread = requests.array("spread", np.float64, (width,))
        states.check(bool((self._spread > 0).all()), "spread")
        self._anchors = requests.array("anchors", np.float64, (None, width))
        states.check(0 < len(self._anchors) <= 96, "anchors")
        self._models = [Smoothness.load(one, len(self.contexts.parts)) for one in requests.readers("models")]
        states.check(0 < len(self._models) <= 3, "models")
        self._open = OpenContexts.load(requests.reader("open"), width, awaited=self._awaited()["id"])
        latest = requests.array("latest", np.float64, (None, width))
        states.check(len(latest) <= 2 * REQUESTS_KEPT and bool(np.isfinite(latest).all()), "latest")
        self._latest = np.zeros((2 * REQUESTS_KEPT, width))
        self._latest_size = len(latest)
        self._latest[: len(latest)] = latest
        self._told = requests.integer("told", high=self.rounds)
        self._next_choice = requests.integer("next_choice", low=self._told + 1)
        self._changed = requests.integer("changed", high=self._told)
        self._remembered = Remembered(width)
        self._remembered.load(requests.reader("remembered"), rounds=self.rounds, arms=len(self.arms))
        super()._import(state)
        self._rows.load(requests)
