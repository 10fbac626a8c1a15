"""MASTER (Wei and Luo 2021): any optimistic policy, replayed at many scales, restarted when two tests contradict it.

symbol       name             meaning
E            length           rounds of the shortest instance; order m has E 2^m (1 in theory)
n            order            order of the present block, which has E 2^n rounds
rho(t)                        g1 / sqrt(t), what the base loses per round in t rounds without change, on [0, 1]

The two tests are in `contradiction`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, Unpack

import numpy as np
import numpy.typing as npt

from driftbandits import state as states
from driftbandits._util.checks import check_count, check_positive, check_probability, check_word
from driftbandits._util.guard import guarded
from driftbandits._util.seeding import generator_from_state, generator_state, same_stream, stream
from driftbandits.arms import ArmSet
from driftbandits.design.blocks import Replay, build_schedule, read_replay, replay_probability
from driftbandits.errors import StateError
from driftbandits.policies.algorithm import Family, OneByOne
from driftbandits.policies.arm_migration import ArmsChange
from driftbandits.policies.decisions import Row
from driftbandits.policies.gp.gpucb import GPUCB
from driftbandits.policies.inputs import CommonSettings
from driftbandits.policies.optimistic import OptimisticPolicy
from driftbandits.policies.rivals.contradiction import LARGEST_WIDTH, Alarm, BlockEvidence, Strength
from driftbandits.policies.rivals.nested import NestingPolicy, find_base, read_settings
from driftbandits.state.reader import FARTHEST
from driftbandits.types import Ints


def regret_rate(
    base: OptimisticPolicy, *, horizon: int, noise: float, failure_probability: float, scale: float = 1.0
) -> float:
    """g1 of rho(t) = g1 / sqrt(t): `scale` times the base's regret bound per round on the scale [0, 1], at least 1.

    `noise` is on the internal scale. Of bases outside the GPUCB and LinUCB family no bound is known here: 1.

    >>> from driftbandits.arms import ArmSet
    >>> base = GPUCB(ArmSet([[0.0], [1.0]]), beta="ridge")
    >>> round(regret_rate(base, horizon=1000, noise=0.1, failure_probability=0.01), 2)
    7.22
    """
    if not isinstance(base, GPUCB):
        return 1.0
    reach = 1.0
    if base._linear:
        d = base.arms.dimension
        reach = float(np.square(base.arms.points).sum(axis=1).max())
        gain = 0.5 * d * math.log1p(horizon * reach / (base.ridge * d))
    else:
        gain = base._gain_at(horizon)
    # sum of sigma^2 <= 2 gain k / log(1 + k / lambda) for k(x, x) <= k; on [0, 1] the widths halve: w for 2 w
    widths = base._factor(gain) * math.sqrt(2.0 * gain * reach / math.log1p(reach / base.ridge)) if reach > 0 else 0.0
    return max(1.0, scale * (widths + noise * math.sqrt(0.5 * math.log(horizon / failure_probability))))


# Of a base in the GPUCB and LinUCB family. Practical: optimism about unseen arms reaches the largest reward.
BASE_BY_MODE: dict[str, dict[str, Any]] = {
    "practical": {"beta": 1.0, "ridge": 0.05},
    "theory": {"beta": "ridge", "ridge": 0.05},
}


@dataclass
class _Instance:
    """One run of the base, and the rounds it played whose reward has not come."""

    serial: int
    order: int
    policy: OptimisticPolicy
    waiting: dict[int, tuple[int, float, float]] = field(default_factory=dict)  # id -> own round, value, width


class Master(OneByOne, NestingPolicy):
    """MASTER: plays the shortest scheduled instance of a base policy, and starts anew when one of two tests fires.

    A block of order n schedules instances of orders m = n, ..., 0 (order n always, a shorter one at each of its places
    with probability `replay_scale` rho(2^n) / rho(2^m)); in every round the shortest one there plays and learns, the
    others pause. A block that ends without an alarm is followed by one twice as long; an alarm starts at order 0.

    Test 1, when an instance's interval I ends: its mean reward is above every optimistic value of the block.
    Test 2, every round: the base earns less than it believed.

                   practical (calibrated tests)                        theory
        Test 1     mean_I y > U + c1 R sqrt(2 log(T/delta) / |I|)       mean_I y >= U + 9 c1 rho_hat(|I|)
        Test 2     sum (f - y - 2 c2 w) > R sqrt(2 t log(T/delta))      mean (f - y) >= 3 c2 rho_hat(t)

    The theory's tests cannot fire at usual horizons. Even with the smallest admissible rho = 1 / sqrt(t) and delta
    0.01, a mean of rewards in [0, 1] would have to exceed another by 9 rho_hat(T) = 107 at T = 10^4, 21 at 10^6 and 3.4
    at 10^8 (Test 2: 36, 6.9 and 1.1). And about 96 % of the rounds of a long block go to replays, so that with many
    arms the policy hardly leaves exploration (Gerogiannis et al., arXiv 2410.13772, prove as much). The practical mode
    is ours: instances of at least E rounds, fewer replays, and tests from the widths that the base knows. They are
    valid while nothing changes if the base's widths are. At the least the base must be optimistic about arms it has not
    seen: scale * beta * sqrt(k(x, x)) at least the largest reward on the scale [-1, 1]; a smaller beta makes Test 1
    fire without end. The default beta = 1 does no more than that: where the reward's RKHS norm is larger, Test 1 may
    fire falsely (three runs of 10,000 rounds without change at d = 2: one false alarm; at d = 3 and d = 10: none), and
    safer choices cost about twice the regret or more: of six switches at d = 2 and 3 the default found five, beta = 3
    three and the "ridge" rule none. A base that cannot represent the reward is not optimistic either: LinUCB on the
    paper's kernel environment restarts 10 to 22 times. The defaults were chosen on the paper's switching environments.

    Parameters
    ----------
    base : an optimistic policy class, or the name of one
    base_settings : its settings, in the user's units; bases of the GPUCB and LinUCB family default to ridge=0.05 and
        beta=1.0, in theory mode beta="ridge", where these are not given
    mode : "practical" or "theory"; decides the defaults of the next three
    length : E; default max(32, ceil(2.5 N)) in practice, 1 in theory
    replay_scale : in [0, 1]; default 0.3 in practice, 1 in theory
    tests : "calibrated" or "theory"
    c_rho : multiplies rho in the theory's tests
    c1, c2 : strength of the tests, see above; larger is more patient
    noise : R, in the user's units, default a tenth of half the reward range
    failure_probability : delta, with which the tests may fire falsely
    others : see `Policy`

    With horizon=None it starts anew at doubling horizons, since the tests need T.

    A restart is a record in `changes` that names no arms: `block` and `compared_with` are the order n of the block,
    `interval` the rounds tested. Tests use the rewards told when the next round is asked, and a reward whose instance
    has ended is counted in `late`; with order="asked" the tests of an interval wait until its rewards are there. Cost
    per round: that of the base. Memory: one base per order, of which at most log2 T.

    >>> policy = Master(ArmSet([[0.0], [0.5], [1.0]]), horizon=100, seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    >>> policy.length
    32
    """

    family = Family.WRAPPER
    reports_changes = True
    needs_horizon = True
    _numbers_rounds = True  # bases move with time
    base: type[OptimisticPolicy]

    def __init__(
        self,
        arms: ArmSet,
        *,
        base: type[OptimisticPolicy] | str = GPUCB,
        base_settings: Mapping[str, Any] | None = None,
        mode: Literal["practical", "theory"] = "practical",
        length: int | None = None,
        replay_scale: float | None = None,
        tests: Literal["calibrated", "theory"] | None = None,
        c_rho: float = 1.0,
        c1: float = 1.0,
        c2: float = 1.0,
        noise: float | None = None,
        failure_probability: float = 0.01,
        **common: Unpack[CommonSettings],
    ) -> None:
        super().__init__(arms, **common)
        self.mode = check_word("mode", mode, ("practical", "theory"))
        practical = mode == "practical"
        self.base = find_base(base, OptimisticPolicy)  # type: ignore[type-abstract]
        defaults = BASE_BY_MODE[self.mode] if issubclass(self.base, GPUCB) else {}
        self.base_settings = {**defaults, **read_settings(base_settings)}
        default_length = max(32, math.ceil(2.5 * len(arms))) if practical else 1
        self.length = default_length if length is None else check_count("length", length)
        default_scale = 0.3 if practical else 1.0
        self.replay_scale = (
            default_scale
            if replay_scale is None
            else check_probability("replay_scale", replay_scale, zero=True, one=True)
        )
        default_tests: Literal["calibrated", "theory"] = "calibrated" if practical else "theory"
        self.tests = default_tests if tests is None else check_word("tests", tests, ("calibrated", "theory"))
        self.c_rho = check_positive("c_rho", c_rho)
        self.c1 = check_positive("c1", c1)
        self.c2 = check_positive("c2", c2)
        self.noise = None if noise is None else check_positive("noise", noise, zero=True)
        self.failure_probability = check_probability("failure_probability", failure_probability)
        self._noise = self._scale.noise(self.noise)
        self._build(0)  # refuses unusable settings now
        self._coins = stream(self.seed, "schedule")
        self._epoch = -1
        self._serial = -1
        self._alarms = [0, 0]

    @property
    @guarded
    def block_order(self) -> int:
        """Order n of the present block, which has length * 2^n rounds."""
        self._begin_once()
        return self._schedule.block

    @property
    @guarded
    def alarms(self) -> tuple[int, int]:
        """How often Test 1 and Test 2 have fired."""
        return self._alarms[0], self._alarms[1]

    # --- epochs, blocks, stretches ------------------------------------------------------------------------------

    def _start(self, horizon: int | None) -> None:
        if horizon is None:
            raise StateError("MASTER needs a horizon")
        self._prepare(horizon, self._regret_rate(horizon) if self.tests == "theory" else 0.0)
        self._new_epoch()

    def _prepare(self, horizon: int, g1: float) -> None:
        """Keep what stays the same through all blocks of a horizon."""
        self._g1 = g1
        self._strength = Strength.at(
            horizon,
            kind=self.tests,
            c1=self.c1,
            c2=self.c2,
            noise=self._noise,
            failure_probability=self.failure_probability,
            g1=g1,
        )

    def _regret_rate(self, horizon: int) -> float:
        return regret_rate(
            self._build(0),
            horizon=horizon,
            scale=self.c_rho,
            noise=self._noise,
            failure_probability=self.failure_probability,
        )

    def _build(self, order: int) -> OptimisticPolicy:
        return self._new_base(self.base, self.base_settings, horizon=self.length * 2**order)

    def _new_epoch(self) -> None:
        self._epoch += 1
        self._past: list[BlockEvidence] = []  # of blocks that are over, with rewards to come: order="asked"
        self._gone: dict[int, tuple[float, float]] = {}  # id -> value, width of instances that are over, likewise
        self._new_block(0)

    def _new_block(self, order: int) -> None:
        self._schedule = build_schedule(order, self._draw_replays(order))
        self._evidence = BlockEvidence(self._strength, self.rounds)
        self._instances: dict[int, _Instance] = {}  # by order: two of one order never overlap
        self._new_stretch(0)

    def _draw_replays(self, order: int) -> list[Replay]:
        replays = [Replay(start=0, stop=2**order, index=order)]
        for index in range(order - 1, -1, -1):
            coins = self._coins.random(2 ** (order - index))
            chance = self.replay_scale * replay_probability(index, order)  # rho(2^n) / rho(2^m)
            starts = np.flatnonzero(coins < chance) * 2**index
            replays.extend(Replay(start=int(s), stop=int(s) + 2**index, index=index) for s in starts)
        return replays

    def _new_stretch(self, number: int) -> None:
        self._stretch = number
        self._position = 0
        self._measure()
        for replay in self._schedule.starting(int(self._schedule.edges[number])):
            self._evidence.open(replay, self.rounds)
        self._activate()

    def _measure(self) -> None:
        start, stop = self._schedule.edges[self._stretch : self._stretch + 2]
        self._stretch_length = int(stop - start) * self.length

    def _activate(self) -> None:
        order = int(self._schedule.indices[self._stretch])
        if order not in self._instances:
            self._serial += 1
            policy = self._build(order)
            policy._begin_once()
            self._instances[order] = _Instance(self._serial, order, policy)
        self._active = self._instances[order]

    # --- the hooks of Policy: the active instance plays ---------------------------------------------------------

    @property
    def _playing(self) -> OptimisticPolicy:
        return self._active.policy

    @property
    def _eldest(self) -> OptimisticPolicy:
        """The instance that has played most."""
        return max(self._instances.values(), key=lambda item: item.policy.rounds).policy

    def _left(self) -> int:
        return self._stretch_length - self._position

    def _stamp(self) -> tuple[int, int]:
        return self.rounds, self._active.serial

    def _drawn(self, arms: Sequence[int], counted: bool) -> None:
        active = self._active
        policy, waiting = active.policy, active.waiting
        first = self.rounds - len(arms)
        for position, arm in enumerate(arms):
            belief = policy._optimism(arm)
            value = min(max(belief.value, -1.0), 1.0)
            # Test 1 needs a bound on the best of all arms; under a mask the arm played need not be it
            self._evidence.believe(float(policy._index().max()))
            waiting[first + position] = (policy.rounds + position, value, belief.width)
        self._follow_base(policy, arms, counted)
        self._position += len(arms)

    def _due(self) -> bool:
        if self._active.policy._due():
            return True
        over = self._position == self._stretch_length
        return self._phase_left() > 0 and (over or any(self._has_verdict(item) for item in self._blocks()))

    def _blocks(self) -> tuple[BlockEvidence, ...]:
        """The evidence of all blocks of which rewards may still come, oldest first."""
        return (*self._past, self._evidence)

    def _has_verdict(self, evidence: BlockEvidence) -> bool:
        ripe = bool(evidence.ended) and evidence.is_ripe(self._first_open())
        return ripe or evidence.second_test(self.rounds) is not None

    def _turn(self) -> None:
        """Test what can be tested; then restart, open the next block or stretch, or let the active instance move on."""
        if self._phase_left() > 0:
            self._move_on()
        self._turn_base(self._active.policy)

    def _move_on(self) -> None:
        over = self._position == self._stretch_length
        slot = int(self._schedule.edges[self._stretch + 1])
        ended = self._evidence.close(slot, self.rounds) if over else []
        alarm = self._test()
        if alarm is not None:
            self._raise(alarm)
            self._new_epoch()
        elif over and self._stretch + 1 == len(self._schedule):
            self._keep_for_later(list(self._instances))
            self._evidence.stop_round = self.rounds
            self._past = [item for item in self._blocks() if item.stop_round > self._known_before()]
            self._new_block(self._schedule.block + 1)
        elif over:
            self._keep_for_later(ended)
            for order in ended:
                self._instances.pop(order, None)
            self._new_stretch(self._stretch + 1)

    def _known_before(self) -> int:
        """The first round whose reward a test waits for: in the order told they do not wait."""
        return self.rounds if self.order == "told" else self._first_open()

    def _test(self) -> Alarm | None:
        """The alarm of the oldest block that has one."""
        known = self._known_before()
        for evidence in self._blocks():
            alarm = evidence.first_test(known) or evidence.second_test(self.rounds)
            if alarm is not None:
                return alarm
        self._past = [item for item in self._past if item.stop_round > known]
        return None

    def _keep_for_later(self, orders: Sequence[int]) -> None:
        """Instances of these orders are over; in the order asked, their rewards still count for tests."""
        if self.order == "asked":
            for order in orders:
                beliefs = self._instances[order].waiting if order in self._instances else {}
                self._gone |= {ident: (value, width) for ident, (_, value, width) in beliefs.items()}

    def _learn_one(self, row: Row, reward: float) -> None:
        instance = self._find(row.tag)
        asked = None if instance is None else instance.waiting.pop(row.id, None)
        if instance is None or asked is None:
            self._learn_gone(row.id, reward)
            return
        own_round, value, width = asked
        self._evidence.learn(row.id, reward, value, width)
        self._teach_base(instance.policy, Row(own_round, row.arm, 0, 0, row.probability), reward)

    def _learn_gone(self, ident: int, reward: float) -> None:
        """A reward of an instance that is over: evidence, where a test waits for it."""
        belief = self._gone.pop(ident, None)
        if belief is None:
            self.late += 1
            return
        evidence = next(item for item in self._blocks() if ident < item.stop_round)
        evidence.learn(ident, reward, *belief)

    def _find(self, serial: int) -> _Instance | None:
        if self._active.serial == serial:
            return self._active
        return next((item for item in self._instances.values() if item.serial == serial), None)

    def _lose(self, rows: npt.NDArray[np.void]) -> None:
        for ident, serial in zip(rows["id"].tolist(), rows["tag"].tolist(), strict=True):
            instance = self._find(serial)
            if instance is not None:
                instance.waiting.pop(ident, None)
            self._gone.pop(ident, None)

    def _raise(self, alarm: Alarm) -> None:
        self._alarms[alarm.test - 1] += 1
        self._report_change(
            epoch=self._epoch,
            block=self._schedule.block,
            interval=alarm.interval,
            compared_with=self._schedule.block,
            statistic=alarm.statistic,
            threshold=alarm.threshold,
        )

    # --- state --------------------------------------------------------------------------------------------------

    def _carry(self, old: Self, change: ArmsChange) -> None:
        """A new epoch with bases on the new arms; epochs, instances and alarms are counted on."""
        self._epoch, self._serial, self._alarms = old._epoch, old._serial, list(old._alarms)
        self._coins = same_stream(old._coins)
        self._start_with_arms(change, epoch=old._epoch)

    def _export(self) -> dict[str, Any]:
        return {
            "horizon": self._phase_length,
            "g1": self._g1,
            "coins": generator_state(self._coins),
            "epoch": self._epoch,
            "serial": self._serial,
            "alarms": list(self._alarms),
            "order": self._schedule.block,
            "replays": np.array([(item.start, item.stop, item.index) for item in self._schedule.replays]),
            "stretch": self._stretch,
            "position": self._position,
            **self._evidence.export(),
            "past": [{**item.export(), "stop_round": item.stop_round} for item in self._past],
            "gone": {
                "ids": np.array(list(self._gone), dtype=np.int64),
                "beliefs": np.array(list(self._gone.values())).reshape(-1, 2),
            },
            "instances": [
                {
                    "serial": item.serial,
                    "order": item.order,
                    "policy": self._export_base(item.policy),
                    "ids": np.array(list(item.waiting), dtype=np.int64),
                    "own_rounds": np.array([row[0] for row in item.waiting.values()], dtype=np.int64),
                    "beliefs": np.array([row[1:] for row in item.waiting.values()]).reshape(-1, 2),
                }
                for item in self._instances.values()
            ],
        }

    def _import(self, state: states.Reader) -> None:
        self._prepare(state.integer("horizon", low=self._phase_length, high=self._phase_length), state.number("g1"))
        self._coins = generator_from_state(state.raw("coins"))
        states.check(self._g1 >= 1.0 if self.tests == "theory" else self._g1 == 0.0, "g1")
        self._epoch = state.integer("epoch", high=FARTHEST)
        self._serial = state.integer("serial", high=FARTHEST)
        alarms = state.raw("alarms")
        if not (isinstance(alarms, (list, tuple)) and len(alarms) == 2 and all(isinstance(n, int) for n in alarms)):
            raise StateError(f"state.engine.alarms must be two whole numbers, got {alarms!r}")
        states.check(all(0 <= number <= FARTHEST for number in alarms), "number of alarms")
        self._alarms = [int(number) for number in alarms]
        order = self._import_schedule(state)
        evidence = self._evidence
        evidence.load(state, order=order, length=self.length, rounds=self.rounds, pending=self._pending.rows())
        self._import_past(state, order)
        slot = int(self._schedule.edges[self._stretch])
        meant = [replay for replay in self._schedule.replays if replay.start <= slot < replay.stop]
        states.check(sorted(item.replay for item in evidence.intervals) == meant, "intervals that have not ended")
        instances = [self._read_instance(item, order) for item in state.readers("instances")]
        self._instances = {item.order: item for item in instances}
        states.check(len({item.serial for item in instances}) == len(self._instances) == len(instances), "instances")
        active = int(self._schedule.indices[self._stretch])
        if active not in self._instances:
            raise StateError(f"state.engine.instances lacks the active one, of order {active}")
        self._active = self._instances[active]

    def _import_past(self, state: states.Reader, order: int) -> None:
        """Blocks that are over with rewards to come, which come one order before the next, and what was believed."""
        self._past = []
        given = list(state.readers("past"))
        states.check(len(given) <= order and (self.order == "asked" or not given), "blocks that are over")
        start = self._evidence.first_round
        for before, item in enumerate(reversed(given), start=1):
            past_order = order - before
            first = start - self.length * 2**past_order
            block = BlockEvidence(self._strength, item.integer("block_start", low=first, high=first))
            block.load(item, order=past_order, length=self.length, rounds=self.rounds, pending=self._pending.rows())
            block.stop_round = item.integer("stop_round", low=start, high=start)
            states.check(not block.intervals, "intervals of a block that is over")
            self._past.insert(0, block)
            start = first
        gone = state.reader("gone")
        ids = gone.array("ids", np.int64, (None,))
        beliefs = gone.array("beliefs", np.float64, (len(ids), 2)).tolist()
        inside = len(set(ids.tolist())) == len(ids) and ((ids >= start) & (ids < self.rounds)).all()
        states.check(bool(inside) and (self.order == "asked" or not len(ids)), "rounds of instances that are over")
        states.check(all(abs(value) <= 1.0 and 0.0 <= width <= LARGEST_WIDTH for value, width in beliefs), "beliefs")
        self._gone = {ident: (value, width) for ident, (value, width) in zip(ids.tolist(), beliefs, strict=True)}

    def _import_schedule(self, state: states.Reader) -> int:
        """The schedule and the place in it, which follows from the rounds; gives the order of the block."""
        order = state.integer("order", high=62)
        rows = state.array("replays", np.int64, (None, 3)).tolist()
        replays = [read_replay(row, order) for row in rows]
        if not any(replay.index == order for replay in replays):
            raise StateError("state.engine.replays lacks the whole block")
        states.check(len(set(replays)) == len(replays), "replays, of which one is there twice,")
        self._schedule = build_schedule(order, replays)
        shorter = self.length * (2**order - 1)  # the blocks before
        block_start = state.integer("block_start", low=self._phase_start + shorter, high=self.rounds)
        self._evidence = BlockEvidence(self._strength, block_start)
        self._stretch = state.integer("stretch", high=len(self._schedule) - 1)
        self._measure()
        self._position = state.integer("position", high=self._stretch_length)
        played = int(self._schedule.edges[self._stretch]) * self.length + self._position
        states.check(played == self.rounds - block_start, "place in the block")
        return order

    def _read_instance(self, state: states.Reader, highest: int) -> _Instance:
        order = state.integer("order", high=highest)
        policy = self._build(order)
        self._load_base(policy, state.reader("policy"))
        ids = state.array("ids", np.int64, (None,))
        own_rounds = state.array("own_rounds", np.int64, ids.shape)
        beliefs = state.array("beliefs", np.float64, (len(ids), 2)).tolist()
        first = next((item.first_round for item in self._evidence.intervals if item.replay.index == order), self.rounds)
        states.check(policy.rounds <= self.rounds - first, "rounds of an instance")
        _check_waiting(ids, first, self.rounds)
        _check_waiting(own_rounds, 0, policy.rounds)
        self._check_base_untold(policy, own_rounds)
        states.check(all(abs(value) <= 1.0 and 0.0 <= width <= LARGEST_WIDTH for value, width in beliefs), "beliefs")
        waiting = {
            ident: (own, value, width)
            for ident, own, (value, width) in zip(ids.tolist(), own_rounds.tolist(), beliefs, strict=True)
        }
        return _Instance(state.integer("serial", high=self._serial), order, policy, waiting)


def _check_waiting(rounds: Ints, first: int, now: int) -> None:
    """Refuse rounds of rewards to come that are not in their order, or not from `first` to before `now`."""
    inside = (np.diff(rounds) > 0).all() and ((rounds >= first) & (rounds < now)).all()
    states.check(bool(inside), "rounds of rewards to come")
