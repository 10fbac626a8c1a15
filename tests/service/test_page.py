"""The page in a real browser, at the widths of a desk and of a phone: nothing is logged, nothing overflows."""

import json
from urllib.parse import quote

import pytest

from driftbandits import live
from driftbandits.service import keys
from driftbandits.service.background import serving
from tests.service.browser import CHROMIUM, browser
from tests.service.test_hostile import HOSTILE

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
WIDTHS = (1400, 390)


@pytest.fixture(scope="module")
def page():
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def shop(send):
    """An experiment with rewards, hostile names, and an arm that was retired."""
    path = send.make("hostile", arms=[*HOSTILE, "good", "gone"], policy="AutoBandit")
    send.post(f"{path}/arms", {"retire": ["gone"]})
    for _ in range(6):
        made = send.decide(path, 20)
        rewards = [{"id": one["id"], "reward": float(one["arm"] == "good")} for one in made]
        send.post(f"{path}/rewards", {"rewards": rewards})
    return path


def look(page, url, width):
    page.troubles.clear()
    page.open(url, width=width)
    assert page.troubles == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_an_empty_list_says_how_to_begin(page, url):
    look(page, f"{url}/", 1400)
    assert "No experiments yet" in page.text()


@pytest.mark.parametrize("width", WIDTHS)
def test_an_experiment_without_rewards_says_how_to_send_one(page, send, width):
    send.make(f"empty {width}")
    look(page, f"{send.url}/experiments/empty%20{width}", width)
    text = page.text()
    assert "No rewards yet: here is how to send one" in text
    assert "Nothing was decided yet." in text
    assert f"curl {send.url}/v1/experiments/empty%20{width}/decisions" in text


@pytest.mark.parametrize("width", WIDTHS)
def test_what_is_played_what_pays_and_what_changed(page, send, shop, width):
    look(page, f"{send.url}/experiments/hostile", width)
    text = page.text()
    summary = send.get(f"{shop}/summary")[1]
    assert page.text("#answer").startswith(summary["leaders"][0]["arm"])
    assert "is the best with a probability of" in page.text("#answer")
    assert "No change was found" in text
    for name in HOSTILE:
        assert name in text
    for chart in ("rewards", "played"):
        size = page.evaluate(f"document.querySelector('#{chart} .main-svg').getBoundingClientRect().width")
        assert 0.5 * width < size <= width
    assert page.evaluate("document.querySelectorAll('main script, main img').length") == 0
    counts = page.text("#counts").split("\n")
    assert counts[counts.index("decisions") + 1] == "120"


@pytest.mark.parametrize("width", WIDTHS)
def test_the_list_leads_to_hostile_names(page, send, shop, width):
    names = [name.replace("/", "|") for name in HOSTILE]
    if width == WIDTHS[0]:
        for name in names:
            send.make(name)
    look(page, f"{send.url}/", width)
    links = page.evaluate("[...document.querySelectorAll('main a')].map((link) => link.getAttribute('href'))")
    assert {f"/experiments/{quote(name, safe='!()*' + chr(39))}" for name in names} <= set(links)
    look(page, f"{send.url}{links[-1]}", width)


def test_it_refreshes_by_itself_and_its_buttons_work(page, send, shop):
    look(page, f"{send.url}/experiments/hostile", 390)
    click = "[...document.querySelectorAll('button')].find((one) => one.innerText === {}).click()"
    page.evaluate(click.format(json.dumps("Pause")))
    page.wait("document.querySelector('#mode').innerText === 'paused: the fallback decides'")
    assert send.get(f"{shop}/summary")[1]["mode"] == "paused"
    assert "paused: the fallback answers" in page.text("#health")
    page.evaluate(click.format(json.dumps("Resume")))
    page.wait("document.querySelector('#mode').innerText === 'the policy decides'")
    page.evaluate("window.confirm = () => true")
    page.evaluate(click.format(json.dumps("retire")))
    page.wait("document.querySelectorAll('tr.retired').length === 2")
    assert sum(arm["retired"] for arm in send.get(f"{shop}/summary")[1]["arms"]) == 2
    send.decide(shop, 5)
    page.wait("document.querySelector('#counts').innerText.includes('125')")


def test_without_the_server_it_says_so_and_goes_on(page, send, shop):
    look(page, f"{send.url}/experiments/hostile", 1400)
    page.send("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1)
    page.evaluate("refresh()")
    page.wait("document.querySelector('#fresh').innerText === 'the server is away; trying again'")
    page.send("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1)
    page.evaluate("refresh()")
    page.wait("document.querySelector('#fresh').innerText === 'up to date'")


def test_a_person_logs_in_with_a_key_and_out_again(page, tmp_path):
    database = f"sqlite:///{tmp_path}/shop.db"
    with live.open(database) as opened:
        key = keys.create_key(opened, "person", "admin")
    with serving(database=database) as where:
        page.send("Page.navigate", url=f"{where}/")
        page.wait("location.pathname === '/login' && document.querySelector('#key')")
        page.evaluate(f"document.querySelector('#key').value = {json.dumps(key)}; document.forms[0].submit()")
        page.wait("location.pathname === '/' && document.body && document.body.dataset.ready === 'yes'")
        assert "No experiments yet" in page.text()
        page.evaluate("document.querySelector('form[action=\"/logout\"]').submit()")
        page.wait("location.pathname === '/login'")
