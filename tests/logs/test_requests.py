"""Logs whose rows have contexts: read, learned from, evaluated for policies that use them."""

import json

import numpy as np
import pytest

import driftbandits as db
from driftbandits.errors import InputError
from driftbandits.logs import Log, estimators, evaluate
from driftbandits.logs.requests import RIDGE, regress
from driftbandits.logs.targets import shares_of
from driftbandits.policies.log_columns import read_columns

ARMS = db.ArmSet.separate(["left", "middle", "right"])
COLUMNS = db.Contexts(x=(-3, 3), device=["phone", "desk"])


def requests_logged(seed, rows=1_500):
    """A log of a policy that looks at contexts a little, the true means, and its columns."""
    rng = np.random.default_rng(seed)
    x, device = rng.normal(size=rows), rng.choice(["phone", "desk"], rows)
    means = 0.5 + np.column_stack([0.1 * x, -0.1 * x, np.where(device == "phone", 0.1, -0.1)])
    law = np.full((rows, 3), 0.2) + 0.4 * np.eye(3)[(x > 0).astype(int)]
    arm = (rng.random((rows, 1)) > law.cumsum(axis=1)).sum(axis=1)
    every = np.arange(rows)
    columns = {
        "round": every,
        "arm": np.array(ARMS.names)[arm],
        "reward": means[every, arm] + rng.normal(0, 0.1, rows),
        "probability": law[every, arm],
        "context.x": x,
        "context.device": device,
    }
    return Log.read(columns, arms=ARMS, contexts=COLUMNS), means, columns


def taught(kind, seed=100, **settings):
    """A policy that learned from a log of another seed."""
    policy = kind(ARMS, contexts=COLUMNS, seed=0, **settings)
    policy.learn(requests_logged(seed, rows=400)[0])
    return policy


# --- reading ----------------------------------------------------------------------------------------------------------


def test_columns_are_inferred_from_what_is_in_them(tmp_path):
    rows = 60
    words = [f"w{k}" for k in range(rows)]
    table = {
        "round": range(rows),
        "arm": ["a", "b"] * 30,
        "reward": [1.0] * rows,
        "probability": [0.5] * rows,
        "context.age": [None, *range(rows - 1)],
        "context.word": words,
        "context.member": [True, False] * 30,
        "context.text.0": [0.5] * rows,
        "context.text.1": [1.5] * rows,
        "context.embedding": [[1.0, 2.0, 3.0]] * rows,
        "context.face.0": [0.25] * 59 + [None],
        "context.face.1": [0.75] * 59 + [None],
    }
    log = Log.read(table)
    spec = log.contexts.to_dict()
    assert len(spec["word"]) == 51
    assert spec["word"][-1] == "other"
    del spec["word"]
    vectors = {"text": {"vector": 2}, "embedding": {"vector": 3}, "face": {"optional": {"vector": 2}}}
    assert spec == {"age": {"optional": "number"}, "member": "boolean", **vectors}
    assert log.row(0).context["text"].tolist() == [0.5, 1.5]
    assert log.row(1).context["embedding"].tolist() == [1.0, 2.0, 3.0]
    assert log.row(1).context["member"] is False
    assert (log.row(0).context["face"].tolist(), log.row(59).context["face"]) == ([0.25, 0.75], None)
    assert log.take([1, 2]).row(1).context["age"] == 1.0
    text = {**table, "context.embedding": ["[1, 2, 3]"] * rows}
    lines = [",".join(text), *(",".join(_field(column[row]) for column in text.values()) for row in range(rows))]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    assert Log.read(tmp_path / "log.csv").contexts == log.contexts


def _field(value):
    return "" if value is None else json.dumps(value) if not isinstance(value, str) else f'"{value}"'


def test_columns_with_numbers_for_names_are_a_vector():
    table = {"round": [0, 1], "arm": ["a", "b"], "reward": [1, 0], "probability": [0.5, 0.5]}
    table |= {"context.0": [1.0, 2.0], "context.1": [3.0, 4.0]}
    log = Log.read(table)
    assert log.contexts == db.Contexts(2)
    assert log.row(1).context.tolist() == [2.0, 4.0]
    assert Log.read({**table, "context.x": [0, 1]}).contexts.to_dict() == {"x": "number", "0": "number", "1": "number"}


@pytest.mark.parametrize(
    ("columns", "declared", "message"),
    [
        ({"context.x": [0.5, None]}, {"x": [0, 1]}, "row 1: context column 'x' must be a finite number, got nan"),
        ({"context.x": ["a", "b"]}, {"x": ["a", "c"]}, "row 1: context column 'x' must be one of 'a', 'c', got 'b'"),
        (
            {"context.x": [0.5, 1]},
            {"y": "number"},
            "no column 'context.y', which .* it has 'context.x'",
        ),
        ({}, {"y": "number"}, "no column 'context.y', which the contexts need; it has no contexts"),
        ({"context.0": [0, 1]}, 2, "no column 'context.1'"),
        ({"context.0": [0, 1], "context.1": [0, 1]}, 1, "a column 'context.1', and vectors of the contexts have 1"),
        ({"context.t.0": [0, 1], "context.t.1": [0, None]}, {"t": {"vector": 2}}, "row 1, column 'context.t.1'"),
        ({"context.t": ["[1, 2]", "[1"]}, {"t": {"vector": 2}}, "row 1: context column 't' must be 2 finite numbers"),
        ({"context.t": [[1, 2], [1]]}, None, "row 1, column 'context.t': must have 2 numbers, got 1"),
        ({"context.t": [0, np.inf]}, None, "row 1, column 'context.t': must be finite"),
        ({"context.t": [0, 1]}, "t", "contexts must be a db.Contexts"),
    ],
)
def test_what_is_wrong_is_named_by_its_column(columns, declared, message):
    table = {"round": [0, 1], "arm": ["a", "b"], "reward": [1, 0], "probability": [0.5, 0.5], **columns}
    with pytest.raises(InputError, match=message.replace("[", r"\[")):
        Log.read(table, contexts=declared)


# --- learning ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [db.AutoBandit, db.DisjointLinThompson])
def test_replayed_laws_are_those_recorded(kind):
    """The log of a policy, rewards late, learned by a new one with its seed: each law, and those afterwards."""
    world = db.environments.create("requests/switch", seed=3, horizon=240, columns=2, size=4)
    own, twin, pupil = (kind(world.arms, contexts=world.contexts, seed=7) for _ in range(3))
    requests = world.requests(0, 240)
    choices, rewards, laws = [], [], []
    for now in range(240):
        laws.append(own.law(context=requests[now]))
        choices.append(own.ask(context=requests[now]))
        rewards.append(float(world.rewards(now, [choices[now].arm], 0)[0]))
        if now >= 2:
            own.tell(choices[now - 2], rewards[now - 2])
    own.tell(choices[238], rewards[238])
    own.tell(choices[239], rewards[239])
    columns = {
        "round": np.arange(240),
        "arm": [choice.arm for choice in choices],
        "reward": rewards,
        "probability": [choice.probability for choice in choices],
        "told": np.arange(240) + 3.0,
        "law": [law.tolist() for law in laws],
    }
    columns |= {"context.0": requests[:, 0], "context.1": requests[:, 1]}
    log = Log.read(columns, arms=world.arms)
    for row, context in enumerate(log.requests):
        if row >= 3:
            twin.tell(row - 3, log.reward[row - 3])
        np.testing.assert_array_equal(twin.law(context=context), log.law[row])
        imposed = twin.impose(log.arm[row], log.probability[row], contexts=[context])
        assert (imposed.differing, imposed.largest) == (0, 0.0)
    for row in range(237, 240):
        twin.tell(row, log.reward[row])
    pupil.learn(log)
    for context in requests[:5]:
        np.testing.assert_array_equal(pupil.law(context=context), own.law(context=context))
        np.testing.assert_array_equal(twin.law(context=context), own.law(context=context))


@pytest.mark.parametrize("kind", [db.AutoBandit, db.DisjointLinUCB])
def test_a_policy_learns_from_contexts(kind):
    policy = taught(kind)
    assert policy.rounds == 400
    best = [int(policy.estimate(context={"x": x, "device": "desk"}).argmax()) for x in (-2, 2)]
    assert best == [1, 0]


def test_a_log_without_the_columns_of_the_policy_is_refused_by_name():
    log, _, columns = requests_logged(0, rows=50)
    policy = db.DisjointLinUCB(ARMS, contexts=db.Contexts(x=(-3, 3), age=float), seed=0)
    with pytest.raises(InputError, match=r"no column 'context.age', which the contexts need; it has 'context.x', "):
        policy.learn(log)
    strange = {**columns, "context.device": ["phone"] * 49 + ["watch"]}
    policy = db.DisjointLinUCB(ARMS, contexts=COLUMNS, seed=0)
    with pytest.raises(InputError, match=r"row 49: context column 'device' must be one of .*, got 'watch'"):
        policy.learn(strange)
    assert policy.rounds == 0
    with pytest.raises(InputError, match=r"one length: arm has 50, contexts 49"):
        read_columns(ARMS, {**columns, "context.x": np.zeros(49), "context.device": ["desk"] * 49}, COLUMNS)
    db.GPUCB(ARMS, seed=0).learn(log)  # one without contexts does not look at them


# --- evaluating -------------------------------------------------------------------------------------------------------


def test_regressions_use_earlier_rows_alone():
    """Against a ridge regression of its own for each arm of one block."""
    log, _, _ = requests_logged(0)
    left = log.reward - 0.5
    model = regress(log, log.contexts.scaled, left)
    size = int(np.count_nonzero(model.block == 0))
    assert not model.slopes[0].any()
    number, arm = 7, 2
    own = (np.arange(len(log)) < number * size) & (log.arm == arm)
    z = model.codes[own]
    by_hand = np.linalg.lstsq(
        np.vstack([z, np.sqrt(RIDGE) * np.eye(z.shape[1])]), np.append(left[own], np.zeros(z.shape[1])), rcond=None
    )[0]
    np.testing.assert_allclose(model.slopes[number, arm], by_hand, atol=1e-10)
    row = number * size + 3
    np.testing.assert_allclose(model.of(np.full(len(log), arm))[row], model.codes[row] @ by_hand, atol=1e-10)
    law = np.array([0.2, 0.3, 0.5])
    expected = sum(law[a] * model.of(np.full(len(log), a)) for a in range(3))
    np.testing.assert_allclose(model.mean_of(shares_of(log, law)[0]), expected, atol=1e-12)


@pytest.mark.parametrize("kind", [db.AutoBandit, db.DisjointLinThompson])
def test_a_policy_that_has_played_is_asked_at_each_context(kind):
    log, means, _ = requests_logged(1, rows=800)
    policy = taught(kind)
    laws = np.array([policy.law(context=context) for context in log.requests])
    weights = laws[np.arange(len(log)), log.arm] / log.probability
    found = evaluate(log, policy, estimator="ips")
    assert found.value == pytest.approx((weights * log.reward).mean())
    assert evaluate(log, policy, estimator="snips").value == pytest.approx(weights @ log.reward / weights.sum())
    doubly = evaluate(log, policy)
    assert doubly.low < (laws * means).sum(axis=1).mean() < doubly.high
    assert doubly.high - doubly.low < 0.5 * (found.high - found.low)
    assert "as it is now: too good if it learned from rows of this log" in doubly.notes[0]
    assert policy.rounds == 400
    difference = evaluate(log, policy, against="uniform")
    assert difference.low > 0.02


def test_targets_that_are_functions_see_the_context():
    log, means, _ = requests_logged(2)
    found = evaluate(log, lambda row: "left" if row.context["x"] > 0 else "middle")
    expected = np.where(log.context["x"] > 0, means[:, 0], means[:, 1]).mean()
    assert found.low < expected < found.high


@pytest.mark.statistical
def test_contexts_narrow_the_interval_of_dr_which_still_covers():
    """60 logs at 95 %: fewer than 52 covered has p < 0.01."""
    policy, covered, widths = taught(db.DisjointLinUCB), 0, []
    for seed in range(60):
        log, means, columns = requests_logged(seed)
        own = shares_of(log, policy)[0].matrix
        found = evaluate(log, policy)
        covered += found.low < (own * means).sum(axis=1).mean() < found.high
        plain = Log.read({name: c for name, c in columns.items() if "." not in name}, arms=ARMS)
        blind = estimators.mean_and_ends(
            estimators.terms_of(
                plain, shares_of(log, policy)[0], "dr", estimators.predict(estimators.bin_rewards(plain)).mean
            ),
            level=0.95,
        )
        widths.append((found.high - found.low) / (blind[2] - blind[1]))
    assert covered >= 52
    assert np.mean(widths) < 0.85


def test_a_new_policy_with_contexts_is_replayed_on_the_rows_it_accepts():
    log, _, _ = requests_logged(3, rows=4_000)
    found = evaluate(log, db.DisjointLinUCB(ARMS, contexts=COLUMNS, seed=0))
    assert found.estimator == "replay"
    assert found.effective_sample_size >= 500
    assert found.low < 0.5 + 0.1 * np.sqrt(2 / np.pi) + 0.03  # the best there is
    assert found.high > 0.5 + 0.1 * np.sqrt(2 / np.pi)
    assert found.value > evaluate(log, "best").value + 0.03
    with pytest.raises(InputError, match=r"no column 'context.age'"):
        evaluate(log, db.DisjointLinUCB(ARMS, contexts=db.Contexts(age=float), seed=0))


def test_a_policy_with_arms_that_the_log_does_not_have_is_refused():
    log, _, _ = requests_logged(0, rows=300)
    arms = db.ArmSet.separate(["left", "middle", "up"])
    policy = db.DisjointLinUCB(arms, contexts=COLUMNS, seed=0)
    policy.ask(context={"x": 0, "device": "desk"})
    with pytest.raises(InputError, match="the policy's arm 'up' is none of the log"):
        evaluate(log, policy)
