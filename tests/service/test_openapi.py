"""Schemathesis over the OpenAPI document: requests that fit it and requests that do not; no 5xx, no violation.

A few per path here; `make soak` sends many. A request that fits may still be refused, for what no schema can say: an
arm that is not there, an idempotency key that was used.
"""

import os

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from driftbandits import live
from driftbandits.live.definition import define
from driftbandits.service import keys
from driftbandits.service.background import serving

EXAMPLES = int(os.environ.get("DRIFTBANDITS_EXAMPLES", "2"))


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server with one key and one experiment."""
    url = f"sqlite:///{tmp_path_factory.mktemp('openapi')}/shop.db"
    with live.open(url) as database:
        key = keys.create_key(database, "tests", "admin")
        database.make("prices", define(arms=["low", "high"], policy="DiscountedUCB", seed=1))
    with serving(database=url) as where:
        yield where, key


@pytest.fixture(scope="module")
def operations(served):
    where, key = served
    schema = schemathesis.openapi.from_url(f"{where}/openapi.json")
    return f"Bearer {key}", [found.ok() for found in schema.get_all_operations()]


def test_all_paths_are_described(operations):
    assert len(operations[1]) == 21


@pytest.mark.parametrize("number", range(21))
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_no_request_breaks_the_contract(operations, number, mode):
    key, described = operations

    @settings(
        max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(case=described[number].as_strategy(generation_mode=mode))
    def send(case):
        answer = case.call_and_validate(headers={"Authorization": key}, excluded_checks=[positive_data_acceptance])
        assert answer.status_code < 500

    try:
        send()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE  # nothing in the request could be wrong
