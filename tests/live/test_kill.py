"""kill -9 of a real process under load: what was answered is in the journal. `attacks/live.py` does it 50 times."""

import pytest

from attacks.common import AttackRow
from attacks.live import kill_once
from driftbandits import live
from driftbandits.live.definition import define


@pytest.mark.parametrize("fields", [{}, {"contexts": {"device": ["mobile", "desktop"]}}], ids=["plain", "contexts"])
def test_what_was_answered_survives_kill_9(tmp_path, fields):
    url = f"sqlite:///{tmp_path}/shop.db"
    with live.open(url) as database:
        database.make("prices", define(arms=["low", "mid", "high"], seed=2, **fields))
    row = AttackRow("kill")
    kill_once(url, row, answers=160 if fields else 60, seconds=0.0)
    assert not row.broken, row.examples
    assert (row.tries, row.counts["brought back bit for bit"]) == (1, 1)
