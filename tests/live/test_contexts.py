"""An experiment whose requests have contexts: what is journaled and replayed, refused, exported and recovered."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

import driftbandits as db
from driftbandits import live
from driftbandits.errors import InputError, KeyReusedError
from driftbandits.live.definition import Definition, define
from driftbandits.live.replica import LARGEST_CONTEXT
from driftbandits.logs import Log
from tests.live.replicas import replica_of, require_same, snapshot_now

ARMS = ["small", "medium", "large"]
CONTEXTS = db.Contexts(
    length=(0, 4000), language=["en", "de", "other"], hour=db.cyclic(24), member=bool, text=3, age=db.optional((0, 100))
)
REQUEST = {"length": 200, "language": "en", "hour": 9, "member": True, "text": [0.5, -1, 2]}


def request(rng):
    """Of NumPy's types, as users have them."""
    return {
        "length": rng.integers(4000),
        "language": rng.choice(["en", "de", "fr"]),
        "hour": np.float32(24 * rng.random()),
        "member": np.bool_(rng.random() < 0.5),
        "text": rng.standard_normal(3),
        "age": np.nan if rng.random() < 0.5 else int(rng.integers(100)),
    }


def reward_of(arm, context):
    hard = context["length"] / 4000
    return {"small": 0.9 - 0.7 * hard, "medium": 0.6 - 0.1 * hard, "large": 0.5, "tiny": 0.3}[arm]


def play(experiment, rng, rounds):
    for _ in range(rounds):
        context = request(rng)
        choice = experiment.decide(context=context)
        experiment.reward(choice, reward_of(choice.arm, context) + 0.05 * (rng.random() - 0.5))


@pytest.fixture
def router(url, clock):
    with live.open(url, clock=clock) as database:
        yield database.create("models", arms=ARMS, contexts=CONTEXTS, seed=4)


def require_same_laws(left, right):
    for length in (100, 2000, 3900):
        for replica in (left, right):
            replica.tell_time(replica.time)
        laws = [replica.law(replica.active(), None, {**REQUEST, "length": length}) for replica in (left, right)]
        np.testing.assert_array_equal(*laws)


def test_it_learns_for_which_requests_an_arm_is_good_and_is_replayed_bit_for_bit(router, url, clock):
    rng = np.random.default_rng(0)
    play(router, rng, 300)
    replica = replica_of(router)
    estimates = [replica.policy.estimate(context={**REQUEST, "length": length}) for length in (100, 3900)]
    assert [ARMS[row.argmax()] for row in estimates] == ["small", "medium"]
    require_same(router.view.player(), replica)
    require_same_laws(router.view.player(), replica)
    with live.open(url) as reader:
        assert reader.view("models").check().verdict == "identical"


def test_everything_that_can_happen_is_replayed(router, url, clock):
    rng = np.random.default_rng(1)
    play(router, rng, 70)
    snapshot_now(router)
    several = router.decide(contexts=[request(rng) for _ in range(5)], allowed=["small", "large"])
    assert {choice.arm for choice in several} <= {"small", "large"}
    router.arms(add=["tiny"], retire=["medium"])
    late = router.decide(context=REQUEST)
    router.pause()
    assert router.decide(context=REQUEST).fallback
    router.resume()
    guests = {"size": None, "allowed": None, "segment": None, "contexts": [REQUEST, {**REQUEST, "length": 3900}]}
    router.submit("decide", {**guests, "guest": True}).result()
    play(router, rng, 20)
    router.reward(late, 0.25)
    router.rewards({choice.id: 0.5 for choice in reversed(several)})
    router.forget(router.decide(context=REQUEST))
    before = replica_of(router)
    require_same(router.view.player(), before)
    assert router.view.check().verdict == "identical"
    summary = router.summary()
    assert (summary.decisions, summary.guests, summary.fallbacks) == (70 + 5 + 3 + 2 + 20, 2, 1)


def test_another_process_goes_on_where_one_has_ended(url, clock):
    rng = np.random.default_rng(2)
    with live.open(url, clock=clock) as database:
        router = database.create("models", arms=ARMS, contexts=CONTEXTS, seed=4)
        play(router, rng, 80)
        waiting = router.decide(context=REQUEST)
        snapshot_now(router)
        play(router, rng, 3)
        before = replica_of(router)
    with live.open(url, clock=clock) as database:
        router = database.experiment("models")
        require_same(replica_of(router), before)
        require_same_laws(replica_of(router), before)
        assert router.reward(waiting, 0.5).accepted == 1
        assert router.view.check().fine


def test_a_batch_decides_as_single_requests_do(url, clock):
    rng = np.random.default_rng(3)
    contexts = [request(rng) for _ in range(8)]
    with live.open(url, clock=clock) as database:
        one, many = (database.create(name, arms=ARMS, contexts=CONTEXTS, seed=4) for name in ("one", "many"))
        singles = [one.decide(context=context) for context in contexts]
        batch = many.decide(contexts=contexts)
        assert [(c.arm, c.probability) for c in singles] == [(c.arm, c.probability) for c in batch]
        columns = {name: [context[name] for context in contexts] for name in contexts[0]}
        assert len(many.decide(contexts=columns)) == 8
        details = [json.loads(event["payload"]) for event in many.events(1)]
    assert details[:8] == details[8:]
    assert details[0]["context"]["text"] == contexts[0]["text"].tolist()
    assert ("age" in details[0]["context"]) == (contexts[0]["age"] == contexts[0]["age"])


WRONG = [
    ({**REQUEST, "lenght": 3}, "no column 'lenght'; did you mean 'length'"),
    ({**REQUEST, "length": "long"}, "context column 'length' must be a finite number, got 'long'"),
    ({**REQUEST, "length": float("nan")}, "context column 'length' must be a finite number, got nan"),
    ({**REQUEST, "length": 10**400}, "context column 'length' must be a finite number"),
    ({**REQUEST, "length": None}, "context column 'length' must be a finite number, got None"),
    ({**REQUEST, "language": 3}, "context column 'language' must be any text, got 3"),
    ({**REQUEST, "member": "yes"}, "context column 'member' must be true or false, got 'yes'"),
    ({**REQUEST, "text": [1, 2]}, r"context column 'text' must be 3 finite numbers, got \[1, 2\] of length 2"),
    ({**REQUEST, "text": [1, 2, float("nan")]}, "context column 'text' must be 3 finite numbers"),
    ({**REQUEST, "text": [0.0] * 1_000_000}, "context column 'text' must be 3 finite numbers.* of length 1000000"),
    ({**REQUEST, "language": "x" * 10_000_000}, "context column 'language' has 10,000,002 bytes as JSON"),
    ({**REQUEST, "language": "\ud800"}, "surrogates not allowed"),
    ({name: value for name, value in REQUEST.items() if name != "hour"}, "the context has no 'hour'"),
    ([1, 2, 3], "a context must be a mapping of 'length', 'language'"),
    ("mobile", "a context must be a mapping"),
]


@pytest.mark.parametrize(("context", "words"), WRONG)
def test_a_wrong_context_is_refused_and_nothing_is_journaled(router, context, words):
    before = replica_of(router).plain_values()
    with pytest.raises(InputError, match=words):
        router.decide(context=context)
    with pytest.raises(InputError, match=f"row 1: .*{words}"):
        router.decide(contexts=[REQUEST, context])
    assert len(router.events()) == 1
    assert {**replica_of(router).plain_values()} == before


def test_every_decision_needs_a_context_and_nothing_else_takes_one(router, url, clock):
    for wrong in ({}, {"size": 3}):
        with pytest.raises(InputError, match=r"each decision needs its context.*length=\(0, 4000\)"):
            router.decide(**wrong)
    with pytest.raises(InputError, match="in the place of a size"):
        router.decide(2, context=REQUEST)
    with pytest.raises(InputError, match="in the place of a size"):
        router.decide(context=REQUEST, contexts=[REQUEST])
    assert len(router.events()) == 1


def test_without_contexts_there_is_none(shop):
    with pytest.raises(InputError, match="this experiment has no contexts"):
        shop.decide(context=REQUEST)
    assert "contexts" not in json.loads(shop.view.definition.to_json())


def test_a_long_context_is_kept_up_to_the_limit(url, clock):
    with live.open(url, clock=clock) as database:
        router = database.create("vectors", arms=ARMS, contexts=1000, seed=0)
        vector = np.random.default_rng(0).standard_normal(1000)
        assert len(json.dumps(vector.tolist())) < LARGEST_CONTEXT
        router.decide(context=vector)
        with pytest.raises(InputError, match=r"the context has .* bytes as JSON; a context may have 65,536"):
            router.decide(context=[10**100 + 1] * 1000)
        require_same(router.view.player(), replica_of(router))


def test_a_key_stands_for_one_context(router):
    choice = router.decide(context=REQUEST, key="a")
    assert router.decide(context=dict(reversed(REQUEST.items())), key="a") == choice
    for other in ({"context": {**REQUEST, "length": 201}}, {"contexts": [REQUEST, REQUEST]}):
        with pytest.raises(KeyReusedError):
            router.decide(**other, key="a")
    assert len(router.events()) == 2


def test_with_patience_it_learns_in_the_order_asked(url, clock):
    with live.open(url, clock=clock) as database:
        router = database.create("models", arms=ARMS, contexts=CONTEXTS, seed=4, patience=60, missing=0.0)
        first = router.decide(context=REQUEST)
        clock.pass_seconds(30)
        second = router.decide(context=REQUEST)
        router.reward(second, 0.75)
        assert replica_of(router).policy.held == 1
        clock.pass_seconds(31)
        router.decide(context=REQUEST)
        policy = replica_of(router).policy
        assert (policy.held, policy.expired) == (0, 1)
        assert router.reward(first, 1.0).late == 1
        require_same(router.view.player(), replica_of(router))
        twin = router.view.definition.build_policy(policy.arms)
        ids = [twin.ask(context=REQUEST).id for _ in range(3)]
        twin.tell(ids[0], 0.0)
        twin.tell(ids[1], 0.75)
        np.testing.assert_array_equal(twin.estimate(context=REQUEST), policy.estimate(context=REQUEST))


def test_the_log_has_the_columns(router, tmp_path):
    rng = np.random.default_rng(5)
    contexts = [request(rng) for _ in range(4)]
    router.decide(contexts=contexts)
    router.export(tmp_path / "log.parquet")
    rows = pq.read_table(tmp_path / "log.parquet").to_pylist()
    for row, context in zip(rows, contexts, strict=True):
        own = {name: value for name, value in row.items() if name.startswith("context.")}
        text = {f"context.text.{k}": value for k, value in enumerate(context["text"])}
        age = None if context["age"] != context["age"] else context["age"]
        plain = {f"context.{name}": context[name] for name in ("length", "language", "hour", "member")}
        assert own == {**plain, **text, "context.age": age}


def test_contexts_that_are_vectors(url, clock, tmp_path):
    with live.open(url, clock=clock) as database:
        router = database.create("vectors", arms=ARMS, contexts=2, policy="DisjointLinUCB", seed=0)
        rng = np.random.default_rng(6)
        for choice, context in zip(router.decide(contexts=(rows := rng.random((30, 2)))), rows, strict=True):
            router.reward(choice, float(context[ARMS.index(choice.arm) % 2]))
        require_same(router.view.player(), replica_of(router))
        router.export(tmp_path / "log.parquet")
    columns = pq.read_table(tmp_path / "log.parquet").to_pydict()
    assert columns["context.0"] == rows[:, 0].tolist()
    assert columns["context.1"] == rows[:, 1].tolist()


def test_an_audit_is_of_the_request(router):
    play(router, np.random.default_rng(7), 100)
    choices = [router.decide(context={**REQUEST, "length": length}) for length in (100, 3900)]
    records = [router.decision(choice) for choice in choices]
    assert [record.law[record.arm] for record in records] == [choice.probability for choice in choices]
    assert records[0].context == {**REQUEST, "length": 100}
    assert records[0].estimates != records[1].estimates


def test_a_definition_reads_plain_values_and_refuses_what_does_not_fit():
    spec = {"device": ["mobile", "desktop"], "hour": {"cyclic": 24}, "price": "number"}
    made = define(arms=ARMS, contexts=spec, seed=0)
    assert Definition.from_json(made.to_json()) == made
    assert made.build_contexts() == db.Contexts(device=["mobile", "desktop"], hour=db.cyclic(24), price=float)
    for fields, words in [
        ({"policy": "GPUCB"}, "GPUCB takes no contexts"),
        ({"segments": ["a", "b"]}, "segments or contexts, not both"),
        ({"settings": {"contexts": 3}}, "field of its own"),
        ({"contexts": {"device": "text"}}, "context column 'device' must be"),
        ({"contexts": {"device": ["mobile"]}}, "2 to 256 categories"),
        ({"contexts": "device"}, "contexts must be a size, or columns by name"),
        ({"contexts": {}}, "Contexts takes either"),
    ]:
        with pytest.raises(InputError, match=words):
            define(**{"arms": ARMS, "contexts": spec, **fields})


def test_a_policy_learns_from_the_log(router, tmp_path):
    play(router, np.random.default_rng(9), 80)
    router.export(tmp_path / "log.parquet")
    replica = replica_of(router)
    pupil = replica.definition.build_policy(replica.policy.arms)
    pupil.learn(Log.read(tmp_path / "log.parquet", contexts=CONTEXTS))
    np.testing.assert_array_equal(pupil.estimate(context=REQUEST), replica.policy.estimate(context=REQUEST))


@pytest.mark.parametrize("contexts", [CONTEXTS, 2], ids=["columns", "vectors"])
@pytest.mark.parametrize("damage", ["{}", '{"context":{"length":"x"}}', "{"])
def test_a_damaged_event_is_left_out_and_the_rest_learned(url, clock, contexts, damage):
    rng = np.random.default_rng(8)
    with live.open(url, clock=clock) as database:
        router = database.create("models", arms=ARMS, contexts=contexts, seed=4)
        for _ in range(30):
            context = request(rng) if contexts is CONTEXTS else rng.random(2)
            router.reward(router.decide(context=context), 0.5)
        router.close()
        with router.view.engine.begin() as connection:
            connection.execute(sa.text("DELETE FROM snapshots"))
            connection.execute(sa.text("UPDATE events SET payload = :damage WHERE seq = 20"), {"damage": damage})
        again = database.experiment("models")
        summary = again.summary()
        assert (summary.brought_back, summary.mode) == ("learned anew from the journal", "running")
        assert replica_of(again).policy.rounds == 29
        assert any("event 20 is left out" in sentence for sentence in summary.health)
        assert not again.decide(context=context).fallback
