"""A journal that a release wrote opens in every version after it, and nothing of it is lost."""

import pytest

import driftbandits as db
from tests.live.released import RELEASES, Clock, unpacked


@pytest.mark.parametrize("folder", RELEASES, ids=lambda folder: folder.name)
def test_a_journal_opens_with_all_it_holds_and_goes_on(folder, tmp_path):
    known = unpacked(folder, tmp_path / "shop.db")
    clock = Clock()
    clock.now += 3_000_000_000  # later than all that was written, and before patience ends
    with db.live.Database(f"sqlite:///{tmp_path}/shop.db") as database:
        database.upgrade()
    with db.live.open(f"sqlite:///{tmp_path}/shop.db", clock=clock) as database:
        assert database.names() == ["prices"]
        check = database.view("prices").check()  # a later version may learn otherwise; the books are the same
        assert (check.problems, check.verdict) == ((), "sound")
        assert "did not note" in check.notes[-1]
        shop = database.experiment("prices")
        summary = shop.summary()
        assert {name: getattr(summary, name) for name in known["books"]} == known["books"]
        assert shop.reward(known["an open decision"], 1.0).accepted == 1
        assert {arm.name for arm in summary.arms if arm.retired} == {"7 EUR"}
        assert shop.decide().arm in ("9 EUR", "12 EUR", "14 EUR")
        assert shop.reward(known["a rewarded one"], 0.0).repeated == 1
