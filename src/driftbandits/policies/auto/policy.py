"""AutoBandit: no horizon, no noise level, no window, no threshold, no length scale to get right."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, Unpack, cast

import numpy as np
import numpy.typing as npt

from driftbandits import state as states
from driftbandits._util.checks import FLOAT_BYTES, check_count, check_memory, check_probability, check_word
from driftbandits._util.guard import guarded
from driftbandits._util.seeding import stream
from driftbandits.arms import ArmSet
from driftbandits.arms.contexts import Contexts
from driftbandits.errors import DelayWarning
from driftbandits.policies.algorithm import UNTIL_TOLD, Family, freeze
from driftbandits.policies.arm_migration import ArmsChange
from driftbandits.policies.auto.arm_migration import (
    RepresentativesChange,
    migrate_counts,
    migrate_exposures,
    migrate_hypotheses,
)
from driftbandits.policies.auto.batching import RewardBatch
from driftbandits.policies.auto.beliefs import Beliefs, moments
from driftbandits.policies.auto.change_report import ChangeReport
from driftbandits.policies.auto.doubts import Doubts
from driftbandits.policies.auto.echoes import Memory
from driftbandits.policies.auto.explanation import Explanation, explain
from driftbandits.policies.auto.exposures import Exposures
from driftbandits.policies.auto.hypotheses import SIGNAL_VARIANCES, Priors
from driftbandits.policies.auto.learning import Learning
from driftbandits.policies.auto.mixture import MORE_SLOTS, Mixture
from driftbandits.policies.auto.probing import Probing, Trial, plays_of_a_trial
from driftbandits.policies.auto.samples import REWARDS_TO_LAST, ManySamples, Samples
from driftbandits.policies.auto.successes import LOW, ROUNDING, TwoValued
from driftbandits.policies.decisions import GONE
from driftbandits.policies.inputs import CommonSettings
from driftbandits.policies.inspection import around, cut
from driftbandits.policies.length_scales import ARMS_TRIED_PER_FEATURE
from driftbandits.policies.rewards import Dependence
from driftbandits.state.declared import array, count, flag, read, write
from driftbandits.types import Bools, Floats, Ints

SAMPLES_PER_HYPOTHESIS = 32
DEFAULT_RANK = 100
SILENT_SHARE = 0.5  # of old decisions: above it, no reward means that there was no success
_LEAST_SAMPLED_WEIGHT = 1e-3  # weight of the hypotheses sampled: they are chosen anew long before


class AutoBandit(Learning):
    """The policy without settings: it learns how fast rewards change, how noisy they are and how similar arms are.

    It keeps a mixture of hypotheses about when the last change was and whether rewards drift. Each is a Gaussian
    posterior, weighted by how well it predicted. An arm is played as often as it is best in samples from the mixture
    (Thompson sampling with an explicit law). A surprising reward adds hypotheses of a change: of everything, of
    most of it, of the level of all arms, or of this arm alone. Rewards of two values (0 or 1, 0 or the price), and
    rewards that are mostly 0 and sometimes an amount, are modelled by their probability of success. Inferior arms
    are re-tested now and then: more often where more can be gained, and after changes were found that way. The
    files in `policies/auto` describe the parts.

    There is no regret bound. What holds by construction: the recorded law is the law drawn from, every allowed arm has
    a probability of at least floor / N, and one reward changes the odds between two hypotheses by at most e^4.

    Parameters
    ----------
    horizon : not needed; if given, more rounds are refused
    kernel : "auto" tries length scales an octave apart on the arms' points, and independent arms, and ignores the
        kernel of the `ArmSet`; "given" uses that kernel. Arms made from a kernel matrix or from features have no
        points: "auto" then tries that kernel and independent arms. For arms crossed with segments it tries length
        scales of the options times correlations of the segments (the given one, 0, 0.5 and 1)
    floor : share of the probability spread evenly over the allowed arms, so that each has at least floor / N
    rank : with more than twice as many arms, the kernel is truncated to this many features; the rest is not learned (at
        most half the variance, or InputError), and "auto" does not try independent arms
    contexts : what is known of each request, if anything is: see `ContextualAutoBandit`, which is built then
    others : see `Policy`

    `with_arms` predicts new arms from the posterior: exactly if the kernel is given and not truncated, otherwise
    approximately. A prior of independent arms is dropped if the arms become too many for it.

    With more than 1,024 arms, the law covers the best arms found so far, and probes and change records use
    representatives of groups of similar arms (see `samples`).

    Late rewards update only hypotheses that were born before their round; drifting ones treat them as new.
    Cost per round: about 20 products of an (R, R) matrix with a vector, where R is the number of arms or features.

    >>> policy = AutoBandit(ArmSet([[0.0], [0.5], [1.0]], names=["low", "mid", "high"]), seed=0)
    >>> for _ in range(200):
    ...     choice = policy.ask()
    ...     policy.tell(choice.id, [0.1, 0.5, 0.2][choice.arm])
    >>> int(policy.law().argmax()), bool(policy.law().min() >= 0.001 / 3)
    (1, True)
    >>> policy.explain().best[0].name
    'mid'
    """

    family = Family.NOTHING_TO_SET
    reports_changes = True
    # 2: probes depend on the possible gain; 3: fewer where changes are visible without them; 4: uninformative rewards
    # are batched; 5: and batching leaves the probability of a change as it is; 6: ties between hypotheses are broken
    # by turns; 7: successes may pay amounts that vary; 8: open decisions are data, and residuals are not cut; 9: noise
    # may have a memory
    behaviour = 9
    learns_open_decisions = True

    def __init__(
        self,
        arms: ArmSet,
        *,
        kernel: Literal["auto", "given"] = "auto",
        floor: float = 0.001,
        rank: int = DEFAULT_RANK,
        contexts: Contexts | None = None,
        **common: Unpack[CommonSettings],
    ) -> None:
        del contexts  # see __new__
        super().__init__(arms, **common)
        self.kernel = check_word("kernel", kernel, ("auto", "given"), cure="a kernel of your own goes into the ArmSet")
        self.floor = check_probability("floor", floor, zero=True)
        self.rank = check_count("rank", rank)
        self._check_memory()

    def __new__(cls, *given: Any, **settings: Any) -> Self:
        """Where requests have a context, a `ContextualAutoBandit`."""
        if cls is AutoBandit and settings.get("contexts") is not None:
            from driftbandits.policies.auto.contextual import ContextualAutoBandit

            return cast(Self, ContextualAutoBandit.__new__(ContextualAutoBandit, *given, **settings))
        return super().__new__(cls, *given, **settings)

    def _check_memory(self) -> None:
        """Refuse a rank that needs too much memory, before the kernels are tried."""
        size = len(self.arms)
        if self.kernel == "given":
            return  # checked when its features are computed
        if size <= 2 * self.rank:  # independent arms are among the kernels: each hypothesis has an (N, N) matrix
            numbers = (Mixture.capacity(len(SIGNAL_VARIANCES)) + MORE_SLOTS) * size**2
        else:
            numbers = min(size, ARMS_TRIED_PER_FEATURE * self.rank) ** 2 if self.arms.kernel is not None else 0
        check_memory(
            FLOAT_BYTES * numbers, f"rank={self.rank} with {size:,} arms", cure="take a smaller rank or fewer arms"
        )

    def _start(self, horizon: int | None) -> None:
        self._build()
        self._clock = self.rounds
        if self.patience is not None and self._open_is_data:
            self._exposures.begin(now=float(self.rounds), patience=float(self.patience), first_id=self.rounds)
        self._mixture.start(self.rounds)
        if self._exposures.active:
            self._mixture.take_noise_for_white()
        self._samples.choose(self._mixture.weights(), anew=True)
        self._refresh()

    def _build(self) -> None:
        priors = Priors(self.arms, auto=self.kernel == "auto", rank=self.rank)
        standing = self._standing = priors.representatives
        self._beliefs = Beliefs(priors, Mixture.capacity(priors.count) + MORE_SLOTS)
        self._mixture = Mixture(self._beliefs)
        sampling = Samples if standing.everyone else ManySamples
        self._samples = sampling(self._beliefs, SAMPLES_PER_HYPOTHESIS, stream(self.seed, "samples"))
        self._probing = Probing(priors, len(standing.numbers), together=standing.together)
        self._change_report = ChangeReport(self._beliefs, len(standing.numbers))
        self._trial = Trial(len(self.arms))
        self._two_valued = TwoValued(len(self.arms))
        self._exposures = Exposures(len(self.arms))
        self._doubts = Doubts(len(standing.numbers))
        self._batch = RewardBatch()
        self._memory = Memory(len(self.arms))
        self._since_tidy, self._renewal_due = 0, False
        self._glances = np.zeros(len(standing.numbers))
        self._known_arms = {}
        self._known_law = self._known_mean = None

    # --- acting -------------------------------------------------------------------------------------------------

    def _law(self) -> Floats:
        if self._known_law is None:
            self._known_law = freeze(self._compose(None))
        return self._known_law

    def _law_within(self, mask: Bools) -> tuple[Floats, bool]:
        """Samples vote for their best allowed arm; the restricted law might have no mass on the allowed arms."""
        return self._compose(mask), not bool(mask.all())

    def _stamp_within(self, mask: Bools | None) -> tuple[int, int]:
        """With a mask, the tag is one more than the best allowed arm, which the played arm is compared with later."""
        version, _ = self._stamp()
        return version, 0 if mask is None else 1 + self._samples.best(self._mixture.weights(), mask)

    def _compose(self, mask: Bools | None) -> Floats:
        law = self._samples.frequencies(self._mixture.weights(), mask)
        probes = self._probe_law(mask)
        if probes is not None:
            law *= 1.0 - float(np.add.reduce(probes))
            law[self._standing.places] += probes
        trial = self._trial.law(mask)
        if trial is not None:
            law *= 1.0 - float(trial.sum())
            law += trial
        law /= np.add.reduce(law)  # votes are sums of small numbers: a single allowed arm must get exactly 1
        law *= 1.0 - self.floor
        law += self.floor / len(law) if mask is None else mask * (self.floor / np.count_nonzero(mask))
        return law

    def _probe_law(self, mask: Bools | None) -> Floats | None:
        """Probability of probing every representative; None if none of them is allowed."""
        if mask is None:
            return self._glances
        offered = mask[self._standing.places]
        if not offered.any():
            return None
        self._probing.needed = self._rewards_needed()
        return self._probing.law(self._standardised(), self._clock, offered)

    def _quiet_rounds(self) -> int:
        """Without delays the law changes only with rewards, probes included."""
        if not self._exposures.active:
            return UNTIL_TOLD
        return self._exposures.left if self._trial.over else 1

    # --- open decisions -----------------------------------------------------------------------------------------

    def _drawn(self, arms: Sequence[int], counted: bool) -> None:
        super()._drawn(arms, counted)
        first = self.rounds - len(arms)
        if self._exposures.active:
            if not self._trial.over:
                for arm in arms:
                    self._trial.count(arm)  # its rewards may be a day away
                self._known_law = None
                self._version += 1
            if self._exposures.play(arms, first, self._exposures.now if self._exposures.timed else float(first)):
                self._step()

    def _delays_depend(self, found: Dependence) -> str | None:
        """Failures come later than successes: count open decisions, unless failures are no zeros."""
        slow = found.slow_reward <= LOW + ROUNDING < found.quick_reward
        if not slow or self.missing is not None or self._two_valued.over or self.order == "asked":
            return None
        low, quick = self.reward_range[0], self._scale.outward(found.quick_reward)
        seen = f"rewards near {quick:.3g} come {found.sooner} rounds sooner than rewards of {low:g}"
        return self._count_open(seen, found.longest)

    def _notice_silence(self) -> None:
        """Only successes are told, and of most decisions nothing: count these as failures, as far as their age says."""
        if self.missing is not None or self.order == "asked" or self._two_valued.begun or self._two_valued.over:
            return
        told = self._monitor.delays.kept()
        longest = int(np.quantile([item.delay for item in told], 0.9))
        before = self.rounds - 2 * longest
        self._pending.gather()
        silent = len(self._pending.before(before)) / max(before, 1)
        if before < 2 * len(told) or silent < SILENT_SHARE or min(item.reward for item in told) <= LOW + ROUNDING:
            return
        seen = (
            f"{silent:.0%} of the decisions more than {2 * longest:,} rounds old have no reward, and none of the "
            f"{len(told)} rewards told was {self.reward_range[0]:g}"
        )
        self._monitor.delays.stop()
        self._monitor.notices.append(DelayWarning(self._count_open(seen, longest)))

    def _count_open(self, seen: str, longest: int) -> str:
        """Learn anew, with open decisions as data; what is said of it."""
        epoch, low, patience = self._change_report.epoch, self.reward_range[0], math.ceil(1.5 * max(longest, 1))
        self._start(None)
        self._change_report.epoch = epoch
        self._exposures.begin(now=float(self.rounds), patience=float(patience), first_id=self.rounds, grows=True)
        return (
            f"{seen}: from now on a decision without a reward counts in part as one of {low:g}, as much as its age "
            f"says; what was learned before is dropped. Pass patience={patience}, missing={low!r} (patience in rounds, "
            f"in a database in seconds) to have this from the beginning, or missing='forget' where rewards get lost"
        )

    def _step(self) -> None:
        self._version += 1
        self._learn_exposed()
        if self.listener is not None:  # a warning may become an exception, which would lose a decision
            self._warn()

    def _retract(self, rows: npt.NDArray[np.void]) -> None:
        if self._exposures.active:
            self._exposures.forget(rows["id"], rows["arm"])

    def _at(self, now: float, patience: float | None) -> None:
        counts_rounds = self.patience is not None
        if patience is None or counts_rounds or not self._open_is_data or self._two_valued.over:
            return
        step = self._exposures.at(now, patience)
        if not self._exposures.active:
            self._exposures.begin(now=now, patience=patience, first_id=self.rounds)
        elif step:
            self._step()

    def _close_missing(self, rows: npt.NDArray[np.void]) -> None:
        if not self._exposures.active:
            super()._close_missing(rows)
            return
        self._exposures.close(rows["id"], rows["arm"])  # their ages have said it: nothing is learned, the law stays
        self.expired += len(rows)
        self._history.left -= int(np.count_nonzero(rows["arm"] != GONE))

    def _learn_late(self, ids: Ints, rewards: Floats) -> bool:
        self._exposures.tell_late(ids, rewards, self._time())
        return self._exposures.active

    # --- beliefs ------------------------------------------------------------------------------------------------

    def _estimate(self) -> Floats:
        return self._expected() if self._standing.everyone else self._samples.mean(self._mixture.weights())

    def _interval(self) -> tuple[Floats, Floats]:
        return around(*moments(self._beliefs, self._mixture.weights()))

    def _glimpse(self, arms: Ints) -> Sequence[Floats]:
        if self._standing.everyone:
            return super()._glimpse(arms)
        weights = self._mixture.weights()
        return [self._samples.mean(weights, arms), *around(*moments(self._beliefs, weights, arms))]

    @guarded
    def catch_up(self) -> bool:
        """Do a part of the work that the last reward has left, in a few milliseconds; no decision depends on it.

        Returns
        -------
        bool
            Whether more is left. What is left is done when it is needed.

        >>> from driftbandits import ArmSet, AutoBandit
        >>> AutoBandit(ArmSet([[0.0], [1.0]]), seed=0).catch_up()
        False
        """
        return self._beliefs.settle_next() if self._phase_length else False

    @guarded
    def explain(self) -> Explanation:
        """The current beliefs in a few lines: print them, or read the fields.

        Returns
        -------
        Explanation
        """
        self._begin_once()
        self._probing.needed = self._rewards_needed()
        return self._explained(self._estimate(), cut(self._interval()), {})

    def _explained(self, estimate: Floats, interval: Floats, columns: dict[str, float]) -> Explanation:
        """The beliefs, with these estimates and intervals, and how likely each column of the contexts matters."""
        return explain(
            self._mixture,
            self._change_report,
            rounds=self.rounds,
            probing=self._probing.summary(self._standardised(), self._clock),
            changes=self.changes_found,
            names=self.arms.names,
            scale=self._scale,
            estimate=estimate,
            interval=interval,
            doubtful=self._doubts.doubtful,
            ignores_kernel=self.kernel == "auto" and self.arms.kernel is not None and not self.arms.guessed,
            columns=columns,
        )

    # --- state --------------------------------------------------------------------------------------------------

    def _carried_tags(self, tags: Ints, change: ArmsChange) -> Ints:
        """A best allowed arm that was removed leaves no tag: there is nothing to compare with."""
        return np.where(tags > 0, change.target[np.maximum(tags - 1, 0)] + 1, tags)

    def _carry(self, old: Self, change: ArmsChange) -> None:
        self._build()
        self._clock = old._clock
        moved = migrate_hypotheses(old._beliefs, old._mixture, self._beliefs.priors, change, rank=self.rank)
        self._two_valued.load(states.Reader(migrate_counts(old._two_valued.export(), change)), rounds=self.rounds)
        self._beliefs.units = self._two_valued.units
        self._beliefs.load(states.Reader(moved.beliefs), rounds=self.rounds)
        self._mixture.load(states.Reader(moved.mixture), rounds=self.rounds)
        self._samples.draw_as(old._samples, moved.places)
        if (moved.places < 0).any():  # hypotheses that were sampled may be gone
            self._samples.choose(self._mixture.weights(), anew=False)
        standing = RepresentativesChange(old._standing, self._standing, change)
        self._doubts = old._doubts.renumbered(standing.sources)
        probing = standing.migrate_probing(old._probing.export(), moved.kinds, self._clock)
        self._probing.load(states.Reader(probing), rounds=self._clock)
        self._trial.load(states.Reader({"left": change.carry(old._trial.left, 0)}))
        self._trial.begin(change.added, plays_of_a_trial(float(self._beliefs.scatter[self._mixture.leader()])))
        self._exposures.load(states.Reader(migrate_exposures(old._exposures, change)), rounds=self.rounds)
        self._batch = old._batch.renumbered(change.target)
        self._memory = old._memory.carried(change.source)
        self._silence_checked = old._silence_checked
        self._since_tidy, self._renewal_due = old._since_tidy, old._renewal_due
        if not self._standing.everyone:  # rewards are batched only where all arms are read
            self._catch_up()
        self._refresh()
        report = old._change_report.export()
        before = np.where(standing.sources >= 0, report["before"][standing.sources], self._expected())
        latest = np.where(standing.sources >= 0, report["latest"][standing.sources], before)
        self._change_report.load(states.Reader({**report, "before": before, "latest": latest}), rounds=self.rounds)

    def _settings(self) -> dict[str, Any]:
        return {"kernel": self.kernel, "floor": self.floor, "rank": self.rank}

    @classmethod
    def _kind(cls) -> str:
        return AutoBandit.__name__  # with contexts too

    @classmethod
    def _read_settings(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        contexts = {"contexts": Contexts.from_dict(settings["contexts"])} if "contexts" in settings else {}
        return {**settings, **contexts}

    _saved = (
        count("clock", high="rounds"),
        count("since_tidy", high=REWARDS_TO_LAST - 1),
        flag("renewal_due"),
        array("glances", within=(0.0, 1.0)),
    )

    def _export(self) -> dict[str, Any]:
        parts: dict[str, Any] = {
            "beliefs": self._beliefs,
            "mixture": self._mixture,
            "samples": self._samples,
            "vigilance": self._probing,
            "watch": self._change_report,
            "two_valued": self._two_valued,
            "trial": self._trial,
            "together": self._batch,
        }
        if self._exposures.active:
            parts["exposures"] = self._exposures
        exported = {name: part.export() for name, part in parts.items()}
        exported["watch"]["doubts"] = self._doubts.export()
        exported["together"]["memory"] = self._memory.export()
        return {**write(self._saved, self), **exported}

    def _import(self, state: states.Reader) -> None:
        self._build()
        read(self._saved, self, state, {})
        self._two_valued.load(state.reader("two_valued"), rounds=self.rounds)
        self._beliefs.units = self._two_valued.units
        self._beliefs.load(state.reader("beliefs"), rounds=self.rounds)
        self._mixture.load(state.reader("mixture"), rounds=self.rounds)
        self._samples.load(state.reader("samples"))
        self._probing.load(state.reader("vigilance"), rounds=self._clock)
        self._change_report.load(state.reader("watch"), rounds=self.rounds)
        self._trial.load(state.reader("trial"))
        self._batch.load(state.reader("together"), offered=len(self.arms))
        if state.reader("together").has("memory"):  # states of behaviour 8 and before have none
            self._memory.load(state.reader("together").reader("memory"), rounds=self.rounds)
        if state.reader("watch").has("doubts"):  # states of 0.3.0 have none
            self._doubts.load(state.reader("watch").reader("doubts"), rounds=self.rounds)
        if state.has("exposures"):
            self._exposures.load(state.reader("exposures"), rounds=self.rounds)
        self._silence_checked = self._monitor.delays.seen.bit_length()
        sampled = self._mixture.weights()[self._samples.rows]
        states.check(float(sampled.sum()) >= _LEAST_SAMPLED_WEIGHT, "hypotheses sampled")
        states.check(self._since_tidy + len(self._batch) < REWARDS_TO_LAST, "rewards that wait")
        states.check(self._glances.sum() <= 1.0, "glances")
        tags = self._pending.rows()["tag"]
        states.check(bool(((tags >= 0) & (tags <= len(self.arms))).all()), "best allowed arms of open decisions")
