"""The table of open decisions by itself, against a plain dictionary."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from driftbandits import ArmSet, Decision, Decisions, Uniform
from driftbandits.errors import InputError, UnknownDecisionError
from driftbandits.policies.core.pending import ROW, Pending, Row, read_decisions


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
    pending, model, dropped, asked, fallen = Pending(limit), {}, 0, 0, []
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
    pending = Pending(100_000)
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
    pending = Pending(10)
    add(pending, [0, 1, 2])
    pending.push(row(3))
    rows = pending.rows()
    assert rows["id"].tolist() == [0, 1, 2, 3]
    assert pending.last == row(3)
    rows["arm"] = 99
    assert 99 not in pending.rows()["arm"]
    again = Pending(10)
    again.load(pending.rows(), dropped=4)
    assert np.array_equal(again.rows(), pending.rows())
    assert again.dropped == 4
    empty = Pending(10)
    assert empty.rows().dtype == ROW
    assert len(empty.rows()) == 0


def test_ids_that_are_not_open_are_named():
    pending = Pending(10)
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
