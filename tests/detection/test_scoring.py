from driftbandits.simulation import Detection, detections


def test_every_alarm_is_a_detection_or_false():
    assert detections([], []) == Detection((), 0, 0)
    assert detections([], [10, 20]) == Detection((), 0, 2)
    assert detections([100], []) == Detection((), 1, 0)
    assert detections([100], [90, 130, 150]) == Detection((30,), 0, 2)
    assert detections([100, 200], [250]) == Detection((50,), 1, 0)
    assert detections([100, 200], [200, 201]) == Detection((100, 1), 0, 0)
