import pickle

from driftbandits.detection.finding import Verdict


def test_verdict():
    assert Verdict(statistic=2.0, threshold=1.0, arms=(3,)).changed
    assert Verdict(statistic=2.0, threshold=4.0, arms=()).excess == 0.5
    assert not Verdict(statistic=2.0, threshold=4.0, arms=()).changed
    assert Verdict(statistic=2.0, threshold=0.0, arms=(1,)).excess == float("inf")


def test_verdicts_pickle():
    verdict = Verdict(1.0, 0.5, (1,))
    assert pickle.loads(pickle.dumps(verdict)) == verdict  # noqa: S301
