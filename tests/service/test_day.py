"""A day in the life, short: what the page shows at its end follows from the day."""

import importlib.util

import httpx

from driftbandits import live
from driftbandits.service.background import serving
from tests.pages import ROOT
from tests.service.browser import CHROMIUM, browser

_spec = importlib.util.spec_from_file_location("day_in_the_life", ROOT / "examples" / "day_in_the_life.py")
example = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(example)
READERS = 1_000


def test_noon_is_found(tmp_path):
    """The day as long as it is by itself, but without HTTP: by six most readers get the new best headline.

    Whether the change is recorded differs from seed to seed; one that is recorded was found after noon.
    """
    day = example.Day(example.READERS)
    noon, six = (sum(time < example.MIDNIGHT + hour * example.HOUR for time in day.times) for hour in (12, 18))
    with live.open(f"sqlite:///{tmp_path}/day.db", clock=day.clock) as database:
        shop = database.create("headlines", arms=example.HEADLINES, patience=example.PATIENCE, missing=0.0, seed=1)
        day.play(shop, 10.0)
        shop.arms(add=[example.ADDED])
        day.play(shop, 11.0)
        shop.arms(retire=[example.RETIRED])
        day.play(shop, 18.0)
        first = max(shop.summary().arms, key=lambda arm: arm.probability)
        assert first.name == "Storm warning lifted"
        assert first.probability > 0.5
        assert all(noon < change.round < six for change in shop.changes())
        assert len(shop.history().rounds) > 20


def test_a_day_in_the_life(tmp_path):
    url = f"sqlite:///{tmp_path}/day.db"
    summary, _ = example.live_a_day(url, READERS)
    assert summary.decisions == READERS == summary.rewards + summary.expired + summary.open
    assert 0.01 < summary.rewards / READERS < 0.15
    assert summary.expired > 0.7 * READERS
    assert summary.fallbacks == summary.late == summary.restarts == 0
    assert "snapshot" in summary.brought_back or "beginning" in summary.brought_back
    assert [arm.name for arm in summary.arms if arm.retired] == [example.RETIRED]
    assert summary.arms[-1].name == example.ADDED
    with live.open(url) as database:
        assert database.view("headlines").check().fine
        with database.view("headlines").journal() as journal:
            times = [event.time / 1e6 - example.MIDNIGHT for event in journal.events(kinds=("decided",))]
    assert 0 <= times[0] < times[-1] < 24 * example.HOUR
    with serving(database=url, clock=lambda: round(1e6 * (example.MIDNIGHT + 25 * example.HOUR))) as where:
        found = httpx.get(f"{where}/v1/experiments/headlines/history").json()["rewards"]
        assert sum(point["count"] for point in found) == READERS  # the night is over: silence counts everywhere
        if CHROMIUM is not None:
            with browser() as page:
                page.open(f"{where}/experiments/headlines")
                assert page.troubles == []
                assert "missing after 30 minutes, counted as 0" in page.text()
                assert "has led for" in page.text("#answer")
