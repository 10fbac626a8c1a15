"""What was expected of arms on both sides of a change that names none."""

import asyncio
import itertools
import time

import numpy as np
import pytest

from driftbandits.service.handlers import Shared
from driftbandits.service.summary import moves
from driftbandits.types import ARMS_CHANGED, Change


def change(begin, *, arms=(), stream=""):
    values = (0.1,) * len(arms)
    return Change(begin + 50, 0, 0, (begin, begin + 40), 0, 9.3, 9.2, arms, values, values, stream=stream)


def beliefs(rows, width=None):
    estimate = np.array(rows, dtype=float)
    ends = (None, None) if width is None else (estimate - width, estimate + width)
    rounds = np.arange(len(rows)) * 100
    return {"rounds": rounds, "names": ["red", "blue", "grey"], "estimate": estimate, "low": ends[0], "high": ends[1]}


ROWS = [[0.5, 0.5, 0.2], [0.79, 0.42, 0.2], [0.7, 0.5, 0.21], [0.33, 0.88, 0.22], [0.9, 0.88, 0.1]]


def test_the_last_looks_before_and_after():
    [found] = moves([change(150)], beliefs(ROWS[:4], width=0.05))
    assert found == [
        {"name": "red", "before": 0.79, "after": 0.33},
        {"name": "blue", "before": 0.42, "after": 0.88},
    ]


def test_after_ends_where_the_next_change_begins():
    first, second = moves([change(150), change(350)], beliefs(ROWS, width=0.05))
    assert [one["name"] for one in first] == ["red", "blue"]
    assert second[0] == {"name": "red", "before": 0.33, "after": 0.9}


def test_intervals_that_overlap_leave_the_largest_move():
    [found] = moves([change(150)], beliefs(ROWS[:4], width=5.0))
    assert [one["name"] for one in found] == ["red"]
    [found] = moves([change(150)], beliefs(ROWS[:4]))
    assert [one["name"] for one in found] == ["red", "blue", "grey"]


@pytest.mark.parametrize("one", [change(150, arms=(1,)), change(150, stream=ARMS_CHANGED), change(900)])
def test_nothing_is_added_to_what_is_known_nor_made_up(one):
    assert moves([one], beliefs(ROWS)) == [[]]
    assert moves([one], None) == [[]]
    assert moves([], beliefs(ROWS)) == []


def test_arms_that_were_not_followed_are_left_out():
    rows = [[0.5, np.nan, 0.2], [0.1, 0.9, 0.2]]
    assert [one["name"] for one in moves([change(50)], beliefs(rows, width=0.01))[0]] == ["red"]


def test_readers_share_a_summary_that_was_begun_after_they_asked():
    """However many ask there are few; who asks while one is made gets the next one; an error reaches all who wait."""
    made, fail = [], []

    async def make():
        made.append(time.monotonic())
        await asyncio.sleep(0.01)
        if fail:
            raise ValueError("nothing can be read")
        return {"number": len(made)}

    async def ask():
        shared = Shared(make)
        early = [asyncio.ensure_future(shared.get()) for _ in range(50)]
        while not made:
            await asyncio.sleep(0.001)
        late = [asyncio.ensure_future(shared.get()) for _ in range(50)]
        answers = [await one for one in (*early, *late)]
        early[0].cancel()
        fail.append(True)
        waiting = [asyncio.ensure_future(shared.get()) for _ in range(3)]
        errors = await asyncio.gather(*waiting, return_exceptions=True)
        fail.clear()
        return answers, errors, await shared.get()

    answers, errors, last = asyncio.run(ask())
    assert [content for content, _ in answers] == [{"number": 1}] * 50 + [{"number": 2}] * 50
    assert answers[0][1] == b'{"number":1}'
    assert [str(error) for error in errors] == ["nothing can be read"] * 3
    assert last[0] == {"number": 4}
    assert all(after - before >= 0.09 for before, after in itertools.pairwise(made))  # nine times as long
