"""The streams: cells, shares of the false-alarm probability, who fires when, and in which order rewards are ranked."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

from driftbandits import ArmSet, CalibratedOPKB
from driftbandits import state as states
from driftbandits.detection.gaps import StreamsAndGaps
from driftbandits.detection.ledger import Totals
from driftbandits.detection.ranks import Ranked
from driftbandits.detection.streams import (
    ABSOLUTE,
    REWARDS,
    SIGNED,
    ConformalMartingale,
    Place,
    Stream,
    Streams,
    part_arms,
)
from driftbandits.errors import StateError
from driftbandits.policies.opkb.parts import Epoch
from tests.policies.opkb.worlds import detector_of
from tests.policies.opkb.worlds import epoch_of as played_epoch

PROPERTY = settings(max_examples=40, deadline=None, derandomize=True)
ARMS = 12
CELLS = np.repeat([0, 1, 2], 4)


# --- cells ------------------------------------------------------------------------------------------------------


@PROPERTY
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 25), dimension=st.floats(0.1, 60), copies=st.booleans())
def test_every_arm_is_in_the_cell_of_its_nearest_centre(seed, size, dimension, copies):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((size, 3))
    if copies:
        features = features[rng.integers(size, size=size)]
    cells = part_arms(features, dimension)
    # centres by the definition: the first arm, then the farthest from all before
    centres = [0]
    for _ in range(min(max(1, math.ceil(dimension / 4)), size) - 1):
        nearest = np.min([np.square(features - features[c]).sum(axis=1) for c in centres], axis=0)
        if nearest.max() == 0:
            break
        centres.append(int(nearest.argmax()))
    distances = np.array([np.square(features - features[c]).sum(axis=1) for c in centres])
    assert sorted(set(cells.tolist())) == list(range(len(centres)))
    np.testing.assert_array_equal(distances[cells, np.arange(size)], distances.min(axis=0))


def test_arms_that_are_all_copies_are_one_cell():
    assert part_arms(np.ones((6, 2)), 24.0).tolist() == [0] * 6
    assert len(set(part_arms(np.repeat(np.eye(3), 2, axis=0), 100.0).tolist())) == 3


# --- shares -----------------------------------------------------------------------------------------------------


class Believed:
    """A belief, and constants of a block, as simple as can be: every arm was played, and nothing was expected."""

    block_size = 16
    noise_variance = 0.01

    def since(self, first_round):
        return Totals(np.ones(ARMS), np.zeros(ARMS), np.zeros(ARMS))

    def mean_before(self, first_round):
        return np.zeros(ARMS)


def built(false_alarm=0.1, cells=CELLS, kind=Streams, seed=0):
    facts = {"facts": Believed()} if kind is StreamsAndGaps else {}
    generator = np.random.default_rng(seed)
    return kind(false_alarm, ARMS, generator, belief=Believed(), cells=lambda: cells, **facts)


def opened(false_alarm=0.1, laws=1, cells=CELLS, kind=Streams, seed=0):
    detector = built(false_alarm, cells, kind, seed)
    for _ in range(laws):
        detector.open(Epoch(0, 0), 0)
    return detector


def shares_of(stream):
    """1 / threshold of every martingale of a law."""
    return [1 / enough for pair, enough in zip(stream.pairs, stream.enough, strict=True) for _ in pair]


@pytest.mark.parametrize("cells", [np.zeros(ARMS, dtype=int), CELLS, np.arange(ARMS)], ids=["one", "three", "each"])
@pytest.mark.parametrize("false_alarm", [0.01, 0.1, 0.9])
def test_shares_of_all_martingales_add_up_to_the_false_alarm_probability(false_alarm, cells):
    """Law by law up to 400; from there on laws of the same shape, 1 / ((m + 1) (m + 2)) each, up to 10,000."""
    detector = opened(false_alarm, laws=400, cells=cells)
    per_law = [sum(shares_of(stream)) for stream in detector._streams]
    np.testing.assert_allclose(per_law, [0.5 * false_alarm / ((m + 1) * (m + 2)) for m in range(400)], rtol=1e-12)
    beyond = sum(per_law[0] * 2 / ((m + 1) * (m + 2)) for m in range(400, 10_000))
    of_arms = ARMS / detector._arm_enough
    total = sum(per_law) + beyond + of_arms
    assert total <= false_alarm * (1 + 1e-12)
    assert total > 0.999 * false_alarm  # nothing is given away


def test_gaps_have_half_in_theory_mode():
    alone, beside = opened(0.1, laws=2), opened(0.1, laws=2, kind=StreamsAndGaps)
    for one, two in zip(alone._streams, beside._streams, strict=True):
        np.testing.assert_allclose(2 * np.array(shares_of(two)), shares_of(one), rtol=1e-12)
    assert beside._arm_enough == pytest.approx(2 * alone._arm_enough)
    assert beside._gaps._false_alarm == pytest.approx(0.05)
    # the k-th test has 6 / (pi k)^2 of it
    assert sum(6 / (math.pi * k) ** 2 for k in range(1, 100_000)) <= 1


def test_nats_to_fire_are_those_of_the_threshold():
    """A single bet of |e| over all arms that has won so much brings its martingale to its threshold."""
    detector = opened(0.1, laws=3)
    for law in range(3):
        nats = detector.nats_to_fire(law, 100)
        stake = 1 / (1 + math.log(101)) - 1 / (1 + math.log(102))
        assert stake * math.exp(nats) / 4 == pytest.approx(detector._streams[law].enough[0])


# --- who fires --------------------------------------------------------------------------------------------------


def feed(detector, rounds, *, moved=(), by=0.0, seed=0, law=0, start=0, arms=None):
    """Residuals N(0, 0.1^2) of arms in turn, those of `moved` moved; rewards are the residuals plus 0.2."""
    rng = np.random.default_rng([seed, start])
    for t in range(start, start + rounds):
        arm = int(rng.integers(ARMS)) if arms is None else arms[t % len(arms)]
        value = 0.1 * rng.standard_normal() + by * (arm in moved)
        detector.see(law, arm, value + 0.2, value, t)
        if detector.fired:
            return t
    return None


def verdict(detector):
    return detector.verdict(Epoch(0, 0), [])


def test_nothing_fires_before_a_change():
    detector = opened()
    assert feed(detector, 400) is None
    assert not detector.fired
    assert verdict(detector) is None


@pytest.mark.parametrize("by", [-0.5, 0.5])
def test_a_jump_of_all_arms_is_found_by_the_whole_law(by):
    detector = opened()
    assert feed(detector, 400) is None
    fired = feed(detector, 200, moved=range(ARMS), by=by, start=400)
    assert 400 < fired < 440
    found = verdict(detector)
    assert found.stream in (f"{ABSOLUTE} of law 0, all arms", f"{SIGNED} of law 0, all arms")
    assert found.compared_with == 0
    assert found.verdict.arms == tuple(range(ARMS))
    assert found.verdict.threshold == detector._streams[0].enough[0]
    assert found.verdict.statistic >= found.verdict.threshold
    assert 390 <= found.first_round <= fired


def test_a_jump_of_one_cell_is_found_by_that_cell():
    """Cell 2 is one draw in nine: for all arms together a small change, for the cell itself everything."""
    rng = np.random.default_rng(2)
    arms = [int(a) for a in np.where(rng.random(3000) < 1 / 9, rng.integers(8, 12, 3000), rng.integers(0, 8, 3000))]
    found = []
    for seed in range(5):
        detector = opened(seed=seed)
        assert feed(detector, 1500, arms=arms, seed=seed) is None
        fired = feed(detector, 1500, arms=arms, moved=range(8, 12), by=0.25, start=1500, seed=seed)
        assert fired is not None
        found.append(verdict(detector))
    of_cell = [item for item in found if item.stream.endswith("of law 0, cell 2")]
    assert len(of_cell) >= 3, [item.stream for item in found]
    for item in of_cell:
        assert item.verdict.arms == (8, 9, 10, 11)
        assert item.verdict.threshold == detector._streams[0].enough[3]
        assert item.verdict.statistic >= item.verdict.threshold
        assert abs(item.first_round - 1500) < 150


def test_a_jump_of_one_seldom_arm_is_found_by_that_arm():
    """Played one round in 60; its cell has others, which hide it."""
    arms = [k % 11 for k in range(59)] + [11]
    detector = opened()
    assert feed(detector, 1800, arms=arms) is None
    fired = feed(detector, 1800, arms=arms, moved=[11], by=0.5, start=1800)
    assert fired is not None
    found = verdict(detector)
    assert found.stream == f"{REWARDS} of arm 11"
    assert found.verdict.arms == (11,)
    assert found.verdict.threshold == detector._arm_enough
    assert found.verdict.statistic >= found.verdict.threshold
    assert abs(found.first_round - 1800) <= 120


def test_a_look_counts_for_its_arm_alone():
    """Rounds that no law drew are in no stream, and make the arm's own martingale fire all the same."""
    detector, rng = opened(), np.random.default_rng(4)
    feed(detector, 300)
    before = [pair[0].numbers.count for pair in detector._streams[0].pairs]
    for t in range(300, 340):
        detector.see_apart(5, 0.7 + 0.1 * float(rng.standard_normal()), t)
    assert [pair[0].numbers.count for pair in detector._streams[0].pairs] == before
    assert detector.fired
    assert verdict(detector).stream == f"{REWARDS} of arm 5"


def plain(value):
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("kind", [Streams, StreamsAndGaps])
def test_after_firing_nothing_is_ranked(kind):
    detector = opened(kind=kind)
    feed(detector, 400)
    assert feed(detector, 100, moved=range(ARMS), by=0.5, start=400) is not None
    streams, arms, found = plain(detector.export())["streams"], plain(detector.export())["arms"], verdict(detector)
    for t in range(500, 520):
        detector.see(0, 3, -0.9, -0.9, t)
        detector.see_apart(4, -0.9, t)
    assert plain(detector.export())["streams"] == streams
    assert plain(detector.export())["arms"] == arms
    again = verdict(detector)
    assert (again.first_round, again.verdict, again.stream) == (found.first_round, found.verdict, found.stream)


def test_a_new_epoch_has_forgotten_everything():
    detector = opened()
    feed(detector, 400)
    feed(detector, 100, moved=range(ARMS), by=0.5, start=400)
    detector.begin()
    assert not detector.fired
    detector.open(Epoch(1, 1), 0)
    assert feed(detector, 300, moved=range(ARMS), by=0.5) is None


def test_laws_do_not_mix():
    """Law 1 may differ from law 0 as it likes: nothing is compared between them. (False alarm: 0.1 of seeds at most.)

    Arms are: each has been played by one law only here.
    """
    detector = opened(laws=2)
    assert feed(detector, 300, arms=range(6)) is None
    assert feed(detector, 300, arms=range(6, 12), moved=range(12), by=0.6, law=1, start=300) is None
    assert detector._streams[0].pairs[0][0].numbers.count == 300
    assert detector._streams[1].pairs[0][0].numbers.count == 300


def test_names_of_places():
    assert str(Place(2, score=SIGNED)) == "signed residuals of law 2, all arms"
    assert str(Place(0, 3, score=ABSOLUTE)) == "absolute residuals of law 0, cell 3"
    assert str(Place(-1, arm=7)) == "rewards of arm 7"


def test_a_residual_is_ranked_over_all_arms_and_in_its_cell():
    stream = Stream(CELLS, 0.05)
    rng = np.random.default_rng(0)
    rows = [(int(rng.integers(ARMS)), float(rng.standard_normal()), float(rng.random())) for _ in range(60)]
    for t, row in enumerate(rows):
        assert stream.see(*row, t) is None
    for cell in (-1, 0, 1, 2):
        mine = [(t, v, u) for t, (arm, v, u) in enumerate(rows) if cell < 0 or CELLS[arm] == cell]
        for martingale, score, two_sided in zip(stream.pairs[cell + 1], (abs, float), (False, True), strict=True):
            direct = ConformalMartingale(two_sided=two_sided)
            for t, v, u in mine:
                direct.see(score(v), u, t)
            assert plain(martingale.export()) == plain(direct.export())


# --- state ------------------------------------------------------------------------------------------------------


def epoch_of(laws):
    epoch = Epoch(0, 0)
    epoch.laws = [np.full(ARMS, 1 / ARMS)] * laws
    epoch.baselines = [None] * laws
    return epoch


@pytest.mark.parametrize("when", ["before", "law", "arm"])
def test_a_copy_goes_on_bit_for_bit(when):
    detector = opened(laws=2)
    feed(detector, 200)
    feed(detector, 100, law=1, start=200)
    if when == "law":
        assert feed(detector, 100, law=1, moved=range(ARMS), by=0.6, start=300) is not None
    if when == "arm":
        for t in range(300, 330):
            detector.see_apart(0, 0.9, t)
        assert detector.fired
    copy = built(seed=99)
    copy.load(states.Reader(detector.export()), epoch_of(2), [], rounds=1000)
    assert copy.fired == detector.fired == (when != "before")
    for one in (detector, copy):
        one.open(Epoch(0, 0), 0)
        feed(one, 100, law=2, moved=[1], by=0.9, start=400)
    assert plain(copy.export()) == plain(detector.export())
    assert str(verdict(copy)) == str(verdict(detector))


@pytest.mark.parametrize(
    "place", [[5, -1, -1, ABSOLUTE], [0, 3, -1, SIGNED], [-1, -1, 11, REWARDS], [0, -1, -1, "?"], [0]]
)
def test_a_place_that_cannot_have_fired_is_refused(place):
    detector = opened()
    feed(detector, 50, arms=range(6))
    state = {**detector.export(), "fired": place}
    with pytest.raises(StateError):
        built().load(states.Reader(state), epoch_of(1), [], rounds=1000)


# --- in the policy ----------------------------------------------------------------------------------------------


def line(size=8):
    return ArmSet(np.linspace(0, 1, size)[:, None], RBF(0.2))


@pytest.fixture
def ranked(monkeypatch):
    """Rows (martingale, score, rank, round) in the order in which they are ranked."""
    rows, see, rank = [], ConformalMartingale.see, Ranked.see

    def kept_rank(self, score, u):
        rows.append([self, score, rank(self, score, u)])
        return rows[-1][2]

    def kept_round(self, score, u, round_):
        evidence = see(self, score, u, round_)
        rows[-1].append(round_)
        return evidence

    monkeypatch.setattr(Ranked, "see", kept_rank)
    monkeypatch.setattr(ConformalMartingale, "see", kept_round)
    return rows


def of_law(rows, policy, law):
    """Scores, ranks and rounds of the signed residuals of a law over all arms."""
    numbers = detector_of(policy)._streams[law].pairs[0][1].numbers
    return [tuple(row[1:]) for row in rows if row[0] is numbers]


def ask_and_tell(policy, rounds, seed=0):
    rng = np.random.default_rng([seed, policy.rounds])
    for _ in range(rounds):
        choice = policy.ask()
        policy.tell(choice.id, float(0.1 * rng.standard_normal()))


@pytest.mark.parametrize("mode", ["practical", "theory"])
def test_late_rewards_enter_their_stream_in_the_order_told(mode, ranked):
    policy = CalibratedOPKB(line(), kernel="given", mode=mode)
    ask_and_tell(policy, 16)  # block 0
    choices = [policy.ask() for _ in range(8)]  # in block 1
    assert len({choice.law for choice in choices}) == 1
    law = choices[0].law
    assert of_law(ranked, policy, law) == []
    order = [5, 0, 7, 3, 1, 2, 6, 4]
    rewards = np.linspace(-0.2, 0.2, 8)
    baseline = np.array(played_epoch(policy).baselines[choices[0].law])
    for k in order:
        policy.tell(choices[k].id, float(rewards[k]))
    rows = of_law(ranked, policy, law)
    assert [round_ for _, _, round_ in rows] == [choices[k].id for k in order]
    # ranks depend on that order: the definition without the part of the uniforms
    scores = [float(rewards[k] - baseline[choices[k].arm]) for k in order]
    for t, (score, rank, _) in enumerate(rows):
        assert score == pytest.approx(scores[t])
        larger = sum(x > score for x in scores[:t])
        assert larger <= rank * (t + 1) + 1e-12
        assert rank * (t + 1) <= larger + 1 + 1e-12


def test_a_batch_enters_in_the_order_of_its_rounds(ranked):
    policy = CalibratedOPKB(line(), kernel="given")
    batch = policy.ask(size=10)
    policy.tell(batch.ids[::-1], np.linspace(-0.1, 0.1, 10))
    assert [round_ for _, _, round_ in of_law(ranked, policy, 0)] == list(range(10))


def test_masked_rounds_leave_streams_alone():
    policy = CalibratedOPKB(line(), kernel="given")
    ask_and_tell(policy, 10)
    before = json.dumps(plain(detector_of(policy).export()), default=str)
    allowed = np.ones(8, dtype=bool)
    allowed[int(policy.law().argmax())] = False
    for _ in range(40):
        choice = policy.ask(allowed=allowed)
        assert allowed[choice.arm]
        policy.tell(choice.id, 0.9)
    assert json.dumps(plain(detector_of(policy).export()), default=str) == before
    assert played_epoch(policy).blocks[-1].told == 10
    assert policy.changes == ()
