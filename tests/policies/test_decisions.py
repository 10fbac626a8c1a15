"""The table of open decisions by itself, against a plain dictionary.

Rewards that wait for earlier ones, patience and expiry, against a slow and simple policy of the same promises.
"""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest

import driftbandits as db
from driftbandits import ArmSet, Decision, Decisions, Uniform
from driftbandits.errors import HeldRewardsWarning, InputError, LateRewardsWarning, UnknownDecisionError
from driftbandits.policies.decisions import HELD_BEFORE_WARNING, ROW, OpenDecisions, ReorderBuffer, Row, read_decisions


def row(number):
    return Row(id=number, arm=number % 7, law=number // 3, tag=number % 2, probability=1.0 / (1 + number % 5))


def add(pending, numbers):
    rows = [row(number) for number in numbers]
    pending.add(
        np.array(numbers), np.array([r.arm for r in rows]), np.array([r.probability for r in rows]), rows[0].law, 0
    )


def as_tuples(rows):
    return [tuple(item) for item in rows.tolist()]


@pytest.mark.parametrize("limit", [1, 2, 5, 64, 1_000])
def test_it_is_a_dictionary_that_drops_its_oldest(limit):
    rng = np.random.default_rng(limit)
    pending, model, dropped, asked, fallen = OpenDecisions(limit), {}, 0, 0, []
    for _ in range(3_000):
        action = rng.random()
        if action < 0.5:
            pending.push(row(asked))
            model[asked] = row(asked)
            asked += 1
        elif action < 0.6:
            numbers = list(range(asked, asked + int(rng.integers(1, 9))))
            add(pending, numbers)
            model |= {n: row(n)._replace(law=row(numbers[0]).law, tag=0) for n in numbers}
            asked = numbers[-1] + 1
        elif action < 0.8 and pending.last is not None:
            assert pending.seek(pending.last.id) == model.pop(pending.last.id)
            pending.strike_found()
        elif action < 0.88 and asked:
            number = int(rng.integers(max(0, asked - 60), asked + 2))
            found = pending.seek(number)
            assert found == model.get(number)
            if found is not None:
                del model[number]
                pending.strike_found()
        elif model:
            gone = rng.choice(list(model), size=min(len(model), int(rng.integers(1, 4))), replace=False)
            pending.gather()
            taken = pending.take(pending.find(gone, asked=asked))
            assert as_tuples(taken) == [tuple(model.pop(int(n))) for n in gone]
        while len(model) > limit:
            fallen.append(tuple(model.pop(min(model))))
            dropped += 1
        if pending.fallen and rng.random() < 0.3:
            assert as_tuples(pending.pick_up()) == fallen
            fallen = []
        assert len(pending) == len(model)
        assert pending.dropped == dropped
        assert pending.oldest() == min(model, default=None)
        if rng.random() < 0.05:
            pending.gather()
            middle = int(rng.integers(asked + 1))
            ids = pending.rows()["id"]
            assert ids[: len(pending.before(middle))].tolist() == sorted(n for n in model if n < middle)
    assert as_tuples(pending.rows()) == [tuple(model[n]) for n in sorted(model)]


def test_at_its_limit_the_oldest_is_found_without_reading_the_table():
    """Counted, not timed: rows looked at per decision stay few although a hundred thousand are open."""
    pending = OpenDecisions(100_000)
    add(pending, list(range(100_000)))
    looked_at = 0

    class Counting(np.ndarray):
        def __getitem__(self, item):
            nonlocal looked_at
            part = super().__getitem__(item)
            looked_at += np.size(part)
            return part

    pending.push(row(100_000))  # the table grows, once
    pending._open = pending._open.view(Counting)
    for number in range(100_001, 100_500):
        pending.push(row(number))
    assert pending.dropped == 500
    assert 0 < looked_at < 500 * 200


def test_rows_of_a_state_are_a_copy_and_reading_them_changes_nothing():
    pending = OpenDecisions(10)
    add(pending, [0, 1, 2])
    pending.push(row(3))
    rows = pending.rows()
    assert rows["id"].tolist() == [0, 1, 2, 3]
    assert pending.last == row(3)
    rows["arm"] = 99
    assert 99 not in pending.rows()["arm"]
    again = OpenDecisions(10)
    again.load(pending.rows(), dropped=4)
    assert np.array_equal(again.rows(), pending.rows())
    assert again.dropped == 4
    empty = OpenDecisions(10)
    assert empty.rows().dtype == ROW
    assert len(empty.rows()) == 0


def test_ids_that_are_not_open_are_named():
    pending = OpenDecisions(10)
    add(pending, [0, 1, 2])
    pending.take(pending.find(np.array([1]), asked=3))
    for ids, message in (([1], "decision 1 is already told"), ([7], "no decision has the id 7"), ([2, 2], "2 appears")):
        with pytest.raises(UnknownDecisionError, match=message):
            pending.find(np.array(ids), asked=3)


def test_decisions_are_read_one_by_one_or_as_columns():
    one = Decision(id=3, arm=1, probability=0.5, law=2)
    two = Decision(id=4, arm=0, probability=0.25, law=2)
    columns = Decisions(np.array([3, 4]), np.array([1, 0]), np.array([0.5, 0.25]), np.array([2, 2]))
    assert list(read_decisions(one)) == [one]
    assert read_decisions([one, two]) == read_decisions((one, two)) == columns == read_decisions(columns)
    for ids in (3, [3, 4], np.array([3]), (), "3"):
        assert read_decisions(ids) is None
    with pytest.raises(InputError, match="not both"):
        read_decisions([one, 4])


@pytest.mark.parametrize(
    "wrong",
    [
        Decision(id="3", arm=0, probability=1.0, law=0),
        Decision(id=10**30, arm=0, probability=1.0, law=0),
        Decision(id=3, arm=None, probability=1.0, law=0),
        Decision(id=3, arm=0, probability="a", law=0),
        Decision(id=3.0, arm=0, probability=1.0, law=0),
        Decisions(np.array([[3]]), np.array([[0]]), np.array([[1.0]]), np.array([[0]])),
        Decisions(np.array([3, 4]), np.array([0]), np.array([1.0]), np.array([0])),
        Decisions(np.array([2**63 + 3], dtype=np.uint64), np.array([0]), np.array([1.0]), np.array([0])),
        [4, Decision(id=3, arm=0, probability=1.0, law=0)],
    ],
    ids=repr,
)
def test_decisions_that_came_back_as_something_else_are_refused(wrong):
    with pytest.raises(InputError, match=r"of decisions must|not both"):
        read_decisions(wrong)


def test_decisions_in_an_array_of_objects_are_decisions():
    one = Decision(id=3, arm=1, probability=1, law=2)  # a probability of 1 may come back as a whole number
    assert list(read_decisions(np.array([one, one], dtype=object))) == [one, one]


@pytest.mark.parametrize("ident", ["1", None, 1.0, True, [1]], ids=repr)
def test_a_late_decision_whose_id_came_back_as_something_else_is_refused(ident):
    policy = Uniform(ArmSet([[0.0], [1.0]]), seed=0)
    decisions = list(policy.ask(size=3))
    with pytest.raises(InputError, match="ids of decisions must be whole numbers"):
        policy.tell(dataclasses.replace(decisions[1], id=ident), 0.5)
    assert policy.pending == 3


ARMS = db.ArmSet(np.linspace(0, 1, 4)[:, None])


class Listening(db.Policy):
    """Plays any arm and keeps what it was taught, in order."""

    def _start(self, horizon):
        self.learned = []

    def _law(self):
        return np.full(len(self.arms), 1 / len(self.arms))

    def _estimate(self):
        return np.zeros(len(self.arms))

    def _learn(self, feedback):
        self.learned += [(row.id, reward) for row, reward in feedback.rows()]

    def _export(self):
        return {"learned": [list(item) for item in self.learned]}

    def _import(self, state):
        self.learned = [(int(ident), float(reward)) for ident, reward in state.raw("learned")]


class SlowBooks:
    """What is open, closed and learned, looked for anew after every event."""

    def __init__(self, *, asked_order, patience=None, missing=None, limit=10**6):
        self.asked_order, self.patience, self.missing, self.limit = asked_order, patience, missing, limit
        self.rounds, self.open, self.waiting, self.learned, self.late = 0, set(), {}, [], 0

    def ask(self):
        self.open.add(self.rounds)
        self.rounds += 1
        if len(self.open) > self.limit:
            self.open.remove(min(self.open))
            self.release()
        if self.patience is not None:
            self.expire([i for i in self.open if self.rounds - 1 - i >= self.patience])

    def tell(self, rewards):
        for ident, reward in rewards.items():
            if ident in self.open:
                self.open.remove(ident)
                self.waiting[ident] = reward
            else:
                self.late += 1
        self.release()

    def expire(self, ids):
        for ident in sorted(set(ids) & self.open):
            self.open.remove(ident)
            if self.missing != "forget":
                self.waiting[ident] = self.missing
        self.release()

    def release(self):
        first = min(self.open, default=self.rounds) if self.asked_order else self.rounds
        for ident in sorted(i for i in self.waiting if i < first):
            self.learned.append((ident, self.waiting.pop(ident)))
        if len(self.waiting) > self.limit:
            self.open.remove(min(self.open))
            self.release()


WAYS = {
    "told": {"order": "told", "missing": 0.5},
    "asked": {"order": "asked", "missing": 0.5},
    "patience": {"patience": 13, "missing": -0.25},
    "patience, forget": {"patience": 5, "missing": "forget"},
    "asked, few kept": {"order": "asked", "missing": "forget", "pending_limit": 6},
    "asked, fewer kept": {"order": "asked", "missing": "forget", "pending_limit": 2},
    "patience, few kept": {"patience": 9, "missing": 0.0, "pending_limit": 7},
}


@pytest.mark.filterwarnings("ignore::driftbandits.errors.LateRewardsWarning")  # many are, on purpose
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_learned_is_what_the_slow_books_say(way, seed):
    settings, rng = WAYS[way], np.random.default_rng(seed)
    policy = Listening(ARMS, seed=seed, **settings)
    policy.law()  # which begins it
    books = SlowBooks(
        asked_order=policy.order == "asked",
        patience=policy.patience,
        missing=policy.missing,
        limit=settings.get("pending_limit", 10**6),
    )
    for _ in range(400):
        action = rng.random()
        if action < 0.45:
            policy.ask()
            books.ask()
        elif action < 0.5:
            policy.ask(size=4)
            for _ in range(4):
                books.ask()
        elif policy.rounds:
            ids = rng.choice(policy.rounds, size=min(policy.rounds, int(rng.integers(1, 4))), replace=False)
            ids = ids[ids >= policy.rounds - 20]
            if action < 0.9:
                rewards = np.round(rng.uniform(-1, 1, len(ids)), 3)
                policy.tell(ids if len(ids) != 1 else int(ids[0]), rewards if len(ids) != 1 else float(rewards[0]))
                books.tell(dict(zip(ids.tolist(), rewards.tolist(), strict=True)))
            else:
                policy.expire(ids)
                books.expire(ids.tolist())
        assert policy.learned == books.learned
        assert (policy.late, policy.pending, policy.held) == (books.late, len(books.open), len(books.waiting))
        if rng.random() < 0.05:
            policy = Listening.restore(ARMS, policy.state_dict())


def test_a_reward_in_time_counts_and_one_too_late_does_not():
    policy = Listening(ARMS, patience=3, missing=0.0)
    first, second = policy.ask(), policy.ask()
    policy.ask(size=2)  # the first is three rounds old now
    assert policy.learned == [(0, 0.0)]
    policy.tell(second, 1.0)
    policy.tell(first, 1.0)
    assert policy.learned == [(0, 0.0), (1, 1.0)]
    assert policy.late == 1


def test_told_twice_stays_an_error_without_missing():
    policy = Listening(ARMS, order="asked")
    first, second = policy.ask(), policy.ask()
    policy.tell(second, 1.0)
    with pytest.raises(UnknownDecisionError, match="already told"):
        policy.tell(second, 1.0)
    policy.tell(first, 0.0)
    assert [ident for ident, _ in policy.learned] == [0, 1]


def test_a_hole_that_holds_many_rewards_warns_once_and_names_patience():
    policy = Listening(ARMS, order="asked")
    policy.ask()
    batch = policy.ask(size=HELD_BEFORE_WARNING + 2)
    policy.tell(batch.ids[:-2], np.zeros(HELD_BEFORE_WARNING))
    with pytest.warns(HeldRewardsWarning, match=r"decision 0 is open, and 1,001 rewards .* patience=") as caught:
        policy.tell(int(batch.ids[-2]), 0.0)
    assert caught[0].filename == __file__
    again = Listening.restore(ARMS, policy.state_dict())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for one in (policy, again):
            one.tell(int(batch.ids[-1]), 0.0)
            one.forget(0)
            assert len(one.learned) == HELD_BEFORE_WARNING + 2


def test_what_waits_has_a_limit():
    policy = Listening(ARMS, order="asked", pending_limit=5)
    policy.ask()
    for _ in range(6):
        policy.tell(policy.ask(), 0.5)
    assert [ident for ident, _ in policy.learned] == [1, 2, 3, 4, 5, 6]
    assert (policy.dropped, policy.held, policy.pending) == (1, 0, 0)


def test_with_patience_a_hole_says_how_late_all_is_learned():
    policy = Listening(ARMS, patience=3_000, missing="forget")
    policy.ask()
    batch = policy.ask(size=2_000)
    with pytest.warns(HeldRewardsWarning, match=r"2,000 rewards .* up to 3,000 rounds late.* a shorter patience"):
        policy.tell(batch, np.zeros(2_000))
    assert policy.held == 2_000


def test_steady_rounds_end_before_patience_does():
    """`simulate` asks so many rounds before it tells."""
    policy = db.Uniform(ARMS, patience=6, missing=0.0)
    assert policy.steady_rounds() == 6
    batch = policy.ask(size=6)
    policy.tell(batch, np.zeros(6))
    assert policy.expired == 0
    policy.ask(size=2)
    assert policy.steady_rounds() == 4


def test_simulate_loses_nothing_by_patience():
    world = db.environments.create("switching/1", seed=0, horizon=400, switches=(200,))
    patient = db.Uniform(world.arms, patience=7, missing=0.0, seed=0)
    trace = db.simulate(patient, world, seed=0)
    plain = db.simulate(db.Uniform(world.arms, seed=0), world, seed=0)
    assert np.array_equal(trace.arm, plain.arm)
    assert patient.expired == 0


def test_the_line_gives_back_what_it_holds_in_order():
    rng, line, model = np.random.default_rng(0), ReorderBuffer(), {}
    for number in rng.permutation(300).tolist():
        line.hold([Row(number, number % 4, 0, 0, 0.5)], [0.001 * number])
        model[number] = 0.001 * number
        if number % 7 == 0:
            ready = [(row.id, reward) for row, reward in line.release(number).rows()]
            assert ready == sorted((i, r) for i, r in model.items() if i < number)
            model = {i: r for i, r in model.items() if i >= number}
        assert len(line) == len(model)
        assert line.first == min(model, default=np.inf)


# --- patience that is too short ---------------------------------------------------------------------------------


def told_after(policy, delay, rounds):
    """Play rounds whose rewards come `delay` rounds later, every tenth at once."""
    asked = []
    for now in range(rounds):
        choice = policy.ask()
        if now % 10:
            asked.append(choice)
        else:
            policy.tell(choice, 0.5)
        if len(asked) > delay:
            policy.tell(asked.pop(0), 0.5)


@pytest.mark.parametrize("missing", [0.0, "forget"])
def test_patience_shorter_than_the_delays_is_said_once(missing):
    policy = db.Uniform(ARMS, patience=5, missing=missing, seed=0)
    words = r"3[0-9] rewards came after .* patience above 5"
    with pytest.warns(LateRewardsWarning, match=words) as caught:
        told_after(policy, 20, 1_000)
    assert len(caught) == 1
    assert "The last came 2" in str(caught[0].message)
    assert policy.late > 800


def test_an_expiry_that_is_too_early_names_expire():
    policy = db.Uniform(ARMS, order="asked", missing=0.0, seed=0)
    batch = policy.ask(size=100)
    policy.expire(batch)
    with pytest.warns(LateRewardsWarning, match=r"100 rewards came after .*, 0 in time: .* Call expire\(\) later"):
        policy.tell(batch, np.full(100, 0.5))


def test_what_patience_costs_is_said_and_what_costs_less():
    with pytest.warns(LateRewardsWarning, match=r"waits as long .* AutoBandit with missing=-1 learns late rewards"):
        told_after(db.GPUCB(ARMS, patience=5, missing=0.0, seed=0), 20, 500)


def test_who_learns_late_rewards_does_not_complain_of_them():
    policy = db.AutoBandit(ARMS, reward_range=(0, 1), patience=5, missing=0.0, seed=0)
    rng, asked = np.random.default_rng(0), []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(1_000):
            asked.append(policy.ask())
            if len(asked) > 20:
                choice = asked.pop(0)
                policy.tell(choice, float(rng.random() < 0.1 * (1 + choice.arm)))
                policy.tell(choice, 0.0)  # told twice
    assert policy.late > 1_900
    assert policy.estimate()[-1] > 1.5 * policy.estimate()[0]


def test_a_few_late_rewards_among_many_are_not_complained_of():
    policy = db.Uniform(ARMS, patience=5, missing=0.0, seed=0)
    waiting = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for now in range(4_000):
            choice = policy.ask()
            if now % 50:
                policy.tell(choice, 0.5)
                continue
            waiting.append(choice)
            if len(waiting) > 1:
                policy.tell(waiting.pop(0), 0.5)
    assert policy.late > 70


def test_rewards_told_twice_are_not_taken_for_late_ones():
    policy = db.Uniform(ARMS, patience=5, missing=0.0, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(200):
            choice = policy.ask()
            policy.tell(choice, 0.5)
            policy.tell(choice, 0.5)
    assert policy.late == 200
