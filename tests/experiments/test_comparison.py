"""How a comparison looks as text and in a notebook."""

import base64
import re
from html.parser import HTMLParser

import pytest

import driftbandits as db
from tests.experiments.small import Greedy, Shifting, small_world


@pytest.fixture(scope="module")
def found():
    policies = {"<b>greedy</b>": Greedy, "ADA-OPKB": db.AdaOPKB, "any arm": db.Uniform}
    return db.compare(policies, {"switch & stay": small_world(), "shifting": Shifting}, seeds=3, jobs=1)


def test_the_text_is_a_table_with_the_best_first(found):
    lines = repr(found).splitlines()
    assert lines[0] == "3 policies in 2 worlds, 3 seeds"
    assert lines[2].split("  ")[0] == "policy"
    place = lines.index("switch & stay:")
    rows = lines[place + 1 : place + 4]
    assert len({len(line) for line in [lines[2], *rows]}) == 1
    summary = found.summary[found.summary["world"] == "switch & stay"].sort_values("regret")
    assert [row.split("  ")[0] for row in rows] == summary["policy"].tolist()
    assert "–" in rows[0].split()
    regrets = [float(re.search(r"([\d,.]+) ±", row)[1].replace(",", "")) for row in rows]
    assert regrets == pytest.approx(summary["regret"].tolist(), rel=0.01)


def test_changes_are_shown_of_those_who_report_them(found):
    rows = {line.split("  ")[0]: line for line in repr(found).splitlines()}
    assert re.search(r"\d of 3", rows["ADA-OPKB"])
    assert not re.search(r"\d of 3", rows["any arm"])


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.rows, self.images = [], 0, []

    def handle_starttag(self, tag, attributes):
        if tag == "img":
            self.images.append(dict(attributes))
        else:
            self.open.append(tag)
        self.rows += tag == "tr"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_html_is_whole_escaped_and_brings_its_pictures(found):
    page = found._repr_html_()
    tags = Tags()
    tags.feed(page)
    assert not tags.open
    assert tags.rows == 1 + 2 * (1 + 3)
    assert "&lt;b&gt;greedy&lt;/b&gt;" in page
    assert "switch &amp; stay" in page
    assert "http" not in page
    assert len(tags.images) == 2
    for image in tags.images:
        assert image["alt"].startswith("Line chart")
        assert base64.b64decode(image["src"].removeprefix("data:image/png;base64,")).startswith(b"\x89PNG")
    assert len(page) < 300_000


def test_one_seed_has_no_errors_and_no_intervals():
    text = repr(db.compare([Greedy, db.Uniform], Shifting, seeds=1, jobs=1))
    assert "1 world, 1 seed" in text
    assert "±" not in text.split("s.e.")[1]
    assert "[" not in text.split("[95 %]")[1]
