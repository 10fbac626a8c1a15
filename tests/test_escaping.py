import csv as csv_module
import io

import pandas as pd
import pytest

from driftbandits._util.markdown import csv, markdown
from driftbandits.experiments.results import SUMMARY_COLUMNS, summary_markdown
from reproduction.autobandit import AutoBanditJudgement, autobandit_markdown
from reproduction.claims import TargetVerdict, verdict_lines

ODD = "a|b\n<img src=x onerror=alert(1)> [c](http://d) `e` \\| &amp;"
SHOWN = r"a\|b &lt;img src=x onerror=alert(1)&gt; \[c\](http://d) \`e\` \\\| &amp;amp;"


def columns(line):
    return line.replace("\\\\", "").replace("\\|", "").count("|") - 1


def test_markup_in_a_name_is_shown_as_it_is_written():
    assert markdown(ODD) == SHOWN
    assert markdown("window 500, c=0.1") == "window 500, c=0.1"


def test_names_add_neither_columns_nor_lines_nor_tags_to_tables():
    numbers = dict.fromkeys(SUMMARY_COLUMNS[2:], 1)
    text = summary_markdown(pd.DataFrame([{"experiment": ODD, "policy": ODD, **numbers}]))
    lines = text.splitlines()
    assert len(lines) == 3
    assert [columns(line) for line in lines] == [8, 8, 8]
    assert "<img" not in text
    assert [columns(line) for line in verdict_lines([TargetVerdict(ODD, 1.0, 2.0, ODD)])] == [5, 5, 5]
    named = autobandit_markdown(AutoBanditJudgement("AutoBandit", pd.DataFrame(columns=["world"]), ODD))
    assert [columns(line) for line in named.splitlines()[3:]] == [10, 10]


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_no_name_is_a_formula(name):
    table = pd.DataFrame({"policy": [name, "a=b"], "regret": [-1.5, 2.0], "seeds": [-1, 1]})
    first, second = csv_module.DictReader(io.StringIO(csv(table), newline=""))
    assert first["policy"] == f"'{' ' * name[0].isspace()}{name.strip()}"
    assert (float(first["regret"]), int(first["seeds"])) == (-1.5, -1)
    assert second["policy"] == "a=b"
    assert table["policy"][0] == name


def test_an_empty_table_keeps_its_head():
    assert csv(pd.DataFrame(columns=list(SUMMARY_COLUMNS))).strip() == ",".join(SUMMARY_COLUMNS)
