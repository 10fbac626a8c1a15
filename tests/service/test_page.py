"""The page in a real browser, at the widths of a desk and of a phone: nothing is logged, nothing overflows."""

import json
from urllib.parse import quote

import pytest

from driftbandits import live
from driftbandits.policies.auto import doubts
from driftbandits.service import keys
from driftbandits.service.background import serving
from tests.service.browser import CHROMIUM, HOW_TO_GET_IT, browser
from tests.service.test_hostile import HOSTILE

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=HOW_TO_GET_IT)
WIDTHS = (1400, 390)


@pytest.fixture(scope="module")
def page():
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def shop(send):
    """An experiment that tests only read."""
    return played(send, "hostile")


@pytest.fixture(scope="module")
def listed(send):
    """Experiments with hostile names."""
    names = [name.replace("/", "|") for name in HOSTILE]
    for name in names:
        send.make(name)
    return names


def played(send, name):
    """An experiment with rewards, hostile names, and an arm that was retired."""
    path = send.make(name, arms=[*HOSTILE, "good", "gone"], policy="AutoBandit")
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


def test_an_empty_list_says_how_to_begin(page, tmp_path):
    with serving(database=f"sqlite:///{tmp_path}/empty.db") as url:
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
    assert "No change was found so far" in text
    assert "Times are of" in page.text("footer")
    titles = page.evaluate("[...document.querySelectorAll('#arms tbody th')].map((one) => one.title)")
    assert set(HOSTILE) < set(titles)
    for name in HOSTILE:
        assert name[:100] in text  # a longer one would fill a phone
    for chart in ("rewards", "played"):
        size = page.evaluate(f"document.querySelector('#{chart} .main-svg').getBoundingClientRect().width")
        assert 0.5 * width < size <= width
    assert page.evaluate("document.querySelectorAll('main script, main img').length") == 0
    counts = page.text("#counts").split("\n")
    assert counts[counts.index("decisions") + 1] == "120"


@pytest.mark.parametrize("width", WIDTHS)
def test_the_list_leads_to_hostile_names(page, send, listed, width):
    look(page, f"{send.url}/", width)
    links = page.evaluate("[...document.querySelectorAll('main a')].map((link) => link.getAttribute('href'))")
    assert {f"/experiments/{quote(name, safe='!()*' + chr(39))}" for name in listed} <= set(links)
    look(page, f"{send.url}{links[-1]}", width)


def test_it_refreshes_by_itself_and_its_buttons_work(page, send):
    shop = played(send, "buttons")
    look(page, f"{send.url}/experiments/buttons", 390)
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


def test_doubts_of_the_policy_are_shown(page, send, monkeypatch):
    monkeypatch.setattr(doubts, "LIMIT", -1.0)  # whatever the rewards
    monkeypatch.setattr(doubts, "CHECKS", 1)
    shop = send.make("doubted", policy="AutoBandit")
    for reward in (0.25, 0.5, 0.75):
        told = [{"id": one["id"], "reward": reward} for one in send.decide(shop, 100)]
        send.post(f"{shop}/rewards", {"rewards": told})
    look(page, f"{send.url}/experiments/doubted", 390)
    assert "does not fit the rewards" in page.text("#health")


def test_the_focus_stays_through_a_refresh(page, send):
    path = send.make("focus", arms=["first", "second"])
    look(page, f"{send.url}/experiments/focus", 1400)
    focused = "document.activeElement.ariaLabel"
    page.evaluate("document.querySelector('td button').focus()")
    assert page.evaluate(focused) == "retire first"
    send.post(f"{path}/arms", {"retire": ["first"]})
    page.evaluate("refresh()")
    page.wait(f"{focused} === 'bring back first'")  # the same button in another place: what is retired stands last
    assert page.evaluate("document.activeElement.closest('tr').rowIndex") == 2
    page.evaluate("document.activeElement.click()")
    page.wait(f"{focused} === 'retire first'")
    page.evaluate("document.querySelector('#steering button').focus()")
    for word in ("Resume", "Pause"):
        page.evaluate("document.activeElement.click()")
        page.wait(f"document.activeElement.innerText === '{word}'")


def test_everything_has_a_name(page, send, shop):
    look(page, f"{send.url}/experiments/hostile", 1400)
    names = page.evaluate("[...document.querySelectorAll('#arms td button')].map((one) => one.ariaLabel)")
    assert len(set(names)) == len(names) >= len(HOSTILE)
    assert page.evaluate("[...document.querySelectorAll('th')].every((one) => one.scope)")
    assert page.evaluate("[...document.querySelectorAll('table')].every((one) => one.caption.innerText)")
    for chart in ("rewards", "played"):
        assert page.evaluate(f"document.getElementById('{chart}').ariaLabel")
    assert page.evaluate("[...document.querySelectorAll('section[aria-labelledby]:not([hidden])')].length") == 4


def said(page, function, *values):
    return page.evaluate(f"{function}({', '.join(json.dumps(value) for value in values)})")


def test_sentences(page, send, shop):
    look(page, f"{send.url}/experiments/hostile", 1400)
    only = {
        "name": "only",
        "segment": None,
        "retired": False,
        "probability": 1,
        "estimate": 0.5,
        "low": 0.25,
        "high": 0.75,
    }
    leader = {"arm": "only", "segment": None, "probability": 1.0, "since": 3.0}
    summary = {"leaders": [leader], "arms": [only], "rewards": 800, "expired": 0, "segments": None, "decisions": 900}
    assert said(page, "answer", summary) == "only is the only arm: it is expected to give 0.5 (0.25 to 0.75)."
    leaders = [leader | {"segment": where, "probability": 0.9} for where in "abcd"]
    by_segment = said(page, "answer", summary | {"leaders": leaders, "segments": list("abcd")})
    assert by_segment.startswith("Best: only in a (90 % sure), only in b (90 % sure)")
    assert by_segment.endswith("and so on in 1 more segments.")
    assert said(page, "noRewards", summary | {"patience": 1800}).startswith("800 rewards have come.")
    assert said(page, "noRewards", summary | {"rewards": 0}) == "No rewards yet."
    assert said(page, "aged", {"age": 40.2}) == " Counted 40 s ago."
    assert said(page, "aged", {"age": 3.0}) == ""
    moved = {"names": [], "arms": [], "before": [], "after": [], "odds": 0, "time": 7200, "began": 3600, "stream": ""}
    moved["seen"] = [{"name": "red", "before": 0.79, "after": 0.33}, {"name": "blue", "before": 0.42, "after": 0.88}]
    assert ": red fell from 0.79 to 0.33, blue rose from 0.42 to 0.88, by what was" in said(page, "sentence", moved)

    moved["part"] = "35 % of the requests, mostly device = desktop"
    said_of_part = "What pays for 35 % of the requests, mostly device = desktop, has changed since about"
    assert said(page, "sentence", moved).startswith(said_of_part)

    pace = {"memory": [{"rounds": None, "weight": 1}], "since": 0, "since_round": 0, "suspected": 0.43}
    pace["suspected_since"] = 3600
    page.evaluate(f"showPace({{pace: {json.dumps(pace)}}}) && 0")
    assert "It may have changed around" in page.text("#pace")
    page.evaluate(f"showPace({{pace: {json.dumps(pace | {'since_round': 9})}}}) && 0")
    assert "It may have changed again around" in page.text("#pace")
    page.evaluate(f"showPace({{pace: {json.dumps(pace | {'since_round': 9, 'suspected': 0.99})}}}) && 0")
    assert "It has probably changed again around" in page.text("#pace")
    assert "as it is since" not in page.text("#pace")


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
