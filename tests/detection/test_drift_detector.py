import copy
import tracemalloc

import numpy as np
import pytest
from scipy import stats

import driftbandits as db
from driftbandits.errors import InputError, StateError
from tests.detection.changing import changed
from tests.detection.slow_ranks import evidence_of, exact_ranks


def normals(seed, *parts):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(mean, sd, size) for mean, sd, size in parts]).tolist()


def test_it_agrees_with_ranks_counted_one_by_one_and_bets_by_definition():
    numbers = np.round(normals(0, (0, 1, 150), (0.5, 1, 50)), 1).tolist()
    detector = db.DriftDetector(1e-9, seed=3)
    uniforms = list(detector._uniforms)
    for x in numbers:
        detector.update(x)
    expected, begun = evidence_of(exact_ranks(numbers, uniforms[: len(numbers)]))
    assert detector.evidence == pytest.approx(expected, rel=1e-9)
    assert detector._wagers.begun == begun


@pytest.mark.parametrize(
    ("after", "kind"),
    [((1.5, 1), "rose"), ((-1.5, 1), "fell"), ((0, 3), "spread"), ((0, 0.2), "gathered")],
)
def test_it_finds_a_change_says_when_and_what_and_starts_anew(after, kind):
    detector = db.DriftDetector(seed=1)
    numbers = normals(2, (0, 1, 500), (*after, 300))
    alarms = [t for t, x in enumerate(numbers) if detector.update(x)]
    assert len(alarms) == 1
    assert 500 <= alarms[0] < 640
    assert abs(detector.since - 500) < 30
    assert detector.kind == kind
    assert not detector.drift_detected
    assert detector.updates == 800


def test_the_alarm_lasts_until_the_next_update():
    detector = db.DriftDetector()
    for x in normals(0, (0, 1, 300), (9, 1, 30)):
        if detector.update(x):
            break
    assert detector.drift_detected
    assert detector.evidence >= 100
    assert not detector.update(9.0)
    assert not detector.drift_detected
    assert detector.evidence < 2
    assert detector.alarms == 1


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["normal", "t", "two values"])
def test_false_alarms_are_as_rare_as_promised(kind):
    """200 streams of 600 numbers at 5 %: more than 20 alarms have probability below 0.002 if the promise holds."""
    alarms = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        numbers = {"normal": rng.normal(size=600), "t": rng.standard_t(3, 600), "two values": rng.random(600) < 0.1}
        detector = db.DriftDetector(0.05, seed=seed)
        alarms += any(detector.update(x) for x in numbers[kind].astype(float).tolist())
    assert alarms <= 20
    assert stats.binom.sf(20, 200, 0.05) < 0.002


@pytest.mark.parametrize("stop", [0, 1, 421, 500, 511, 512, 513])
def test_a_restored_one_goes_on_bit_for_bit(stop):
    numbers = normals(3, (0, 1, 300), (4, 1, 300))
    first = db.DriftDetector(seed=5)
    for x in numbers[:stop]:
        first.update(x)
    second = db.DriftDetector.restore(copy.deepcopy(first.state_dict()))
    for x in numbers[stop:]:
        assert first.update(x) == second.update(x)
        assert (first.evidence, first.since, first.kind) == (second.evidence, second.since, second.kind)
    assert repr(first) == repr(second)
    assert first.alarms > 0


def test_state_survives_at_the_moment_of_the_alarm():
    first = db.DriftDetector()
    for x in normals(0, (0, 1, 300), (9, 1, 30)):
        if first.update(x):
            break
    second = db.DriftDetector.restore(first.state_dict())
    assert second.drift_detected
    assert second.since == first.since


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("format", 3),
        ("false_alarm", 0.0),
        ("seed", "-1"),
        ("updates", 7),
        ("alarms", 1),
        ("since", 2),
        ("kind", "rose"),
        ("drift_detected", True),
        ("generator", {}),
        ("ranks.count", 2),
        ("wagers.numbers", 2),
    ],
)
def test_a_state_that_cannot_be_is_refused(path, value):
    detector = db.DriftDetector()
    for x in (0.1, 0.2, 0.3):
        detector.update(x)
    with pytest.raises(InputError):
        db.DriftDetector.restore(changed(detector.state_dict(), path, value))


def test_a_state_that_lacks_something_names_it():
    state = db.DriftDetector().state_dict()
    del state["wagers"]
    with pytest.raises(StateError, match="wagers is missing"):
        db.DriftDetector.restore(state)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), "0.3", None, [0.3]])
def test_what_is_no_finite_number_is_refused_and_changes_nothing(wrong):
    detector = db.DriftDetector()
    detector.update(1)
    with pytest.raises(InputError, match="drift detector takes"):
        detector.update(wrong)
    assert detector.updates == 1


@pytest.mark.parametrize("wrong", [0, 1, -0.1, "x"])
def test_a_wrong_promise_is_refused(wrong):
    with pytest.raises(InputError, match="false_alarm"):
        db.DriftDetector(wrong)


def test_kinds_of_numbers_are_one():
    plain, numpy = db.DriftDetector(), db.DriftDetector()
    for x in (1, 0, 1, 1, 0):
        plain.update(x)
        numpy.update(np.float32(x))
    assert plain.evidence == numpy.evidence


def test_memory_stays_below_two_megabytes():
    numbers = np.random.default_rng(0).random(12_000).tolist()
    tracemalloc.start()
    detector = db.DriftDetector()
    for x in numbers:
        detector.update(x)
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert detector._ranks.count == 12_000
    assert used < 2e6


def test_it_stands_where_a_detector_of_river_stands():
    """A classifier that is trained anew at an alarm, and a tree that clones its detector for every branch."""
    pytest.importorskip("river", reason="river is not installed: pip install river==0.26.1")
    from river import drift, dummy, tree

    detector = db.DriftDetector()
    model = drift.DriftRetrainingClassifier(
        dummy.NoChangeClassifier(), drift_detector=detector, train_in_background=False
    )
    rng = np.random.default_rng(0)
    for t in range(600):
        model.learn_one({"x": 0.0}, bool(rng.random() < (0.02 if t < 400 else 0.5)))
    assert detector.alarms == 1
    assert abs(detector.since - 400) < 30
    adaptive = tree.HoeffdingAdaptiveTreeClassifier(drift_detector=db.DriftDetector(), seed=0)
    for x in rng.random(300).tolist():
        adaptive.learn_one({"x": x}, x > 0.5)
    assert adaptive.predict_one({"x": 0.9})


def test_a_clone_is_new_with_the_same_settings():
    detector = db.DriftDetector(0.05, seed=4)
    detector.update(1.0)
    assert repr(detector.clone()) == "DriftDetector(false_alarm=0.05, seed=4; 0 updates)"
