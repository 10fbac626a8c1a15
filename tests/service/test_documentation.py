"""The page on the service: an alert for every metric, and no metric that is not there."""

import re

import yaml

from tests.pages import ROOT, blocks_of


def test_there_is_a_rule_for_every_metric(send):
    made = send.decide(send.make("prices"))
    send.post("/v1/experiments/prices/rewards", {"id": made[0]["id"], "reward": 1})
    send.get("/v1/experiments/prices/summary")
    there = set(
        re.findall(r"^# TYPE (driftbandits_\w+) (?:counter|gauge|histogram)", send.http.get("/metrics").text, re.M)
    )
    there = {name.removesuffix("_total") for name in there if not name.endswith("_created")}
    block = next(block for block in blocks_of(ROOT / "docs" / "service.md") if block.file == "alerts.yaml")
    rules = yaml.safe_load(block.text)["groups"][0]["rules"]
    named = set(re.findall(r"driftbandits_\w+", " ".join(rule["expr"] for rule in rules)))
    named = {name.removesuffix("_total").removesuffix("_bucket") for name in named}
    assert named == there
