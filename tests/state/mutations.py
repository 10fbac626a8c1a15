"""Damage to saved states: every policy at several moments, every value of a state made wrong in every way we know.

`SUBJECTS` are the policies, `moments` their states, `damages` the damaged copies of one state, and `outcome` says what
became of one: refused, played on, or failed, with the error. The exhaustive form is

    python -m tests.state.mutations [name ...] [--every n]

which prints every failure and counts by kind; `sample` is a few of them.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import signal
import sys
import warnings
from functools import partial

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from driftbandits import AdaOPKB, ArmSet, Constants, errors
from driftbandits.errors import StateError, UnknownDecisionError
from driftbandits.policies import POLICIES

ROUNDS = 60  # that a restored policy plays
HORIZON = 320
ARMS = ArmSet(np.linspace(0.0, 1.0, 6)[:, None], kernel=RBF(0.3))
MANY = ArmSet(np.linspace(0.0, 1.0, 40)[:, None], kernel=RBF(0.3))  # more than twice the rank: feature coordinates
ROUGH = ArmSet(np.linspace(0.0, 1.0, 40)[:, None], kernel=RBF(0.01))  # 40 features: WeightedGPUCB has an anchor
SMALL = {"width": 16, "steps": 3}
QUICK = Constants(
    sigma=1.0, failure_probability=1e-2, c0=1.0, c1=0.5, c2=0.3, c3=0.005, c4=0.5
)  # blocks and restarts early
ALLOWED = tuple(kind for name in ("LawError",) if (kind := getattr(errors, name, None)) is not None)
FINE = ("refused", "played", "as built", *(kind.__name__ for kind in ALLOWED))


def _made(name, arms=ARMS, **settings):
    return partial(POLICIES[name], arms, seed=3, **{"horizon": HORIZON, **settings})


SUBJECTS = {name: _made(name) for name in POLICIES}
SUBJECTS |= {name: _made(name, constants=QUICK) for name in ("OPKB", "AdaOPKB")}
SUBJECTS |= {name: _made(name, constants=QUICK, **SMALL) for name in ("OPNN", "AdaOPNN")}
SUBJECTS |= {
    "NeuralUCB": _made("NeuralUCB", every=20, **SMALL),
    "SlidingWindowNeuralUCB": _made("SlidingWindowNeuralUCB", every=20, window=30, **SMALL),
    "GLRklUCB": _made("GLRklUCB", test_every=3, split_every=2),
    "LinearExp3": _made("LinearExp3", restart=70),
    "Master": _made("Master", length=16),
}
VARIANTS = {
    "AdaOPKB.published": partial(AdaOPKB.published, ARMS, seed=3, horizon=HORIZON),
    "AdaOPKB, no horizon": _made("AdaOPKB", horizon=None, constants=QUICK),
    "AdaOPNN, untrained": _made("AdaOPNN", train=False, constants=QUICK, **SMALL),
    "AutoBandit, given kernel": _made("AutoBandit", MANY, kernel="given"),
    "AutoBandit, no horizon": _made("AutoBandit", horizon=None),
    "CalibratedOPKB, theory": _made("CalibratedOPKB", mode="theory"),
    "CalibratedOPKB, asked": _made("CalibratedOPKB", order="asked", kernel="given"),
    "CalibratedOPKB, theory, asked": _made("CalibratedOPKB", mode="theory", order="asked"),
    "AdaOPKB, patience": _made("AdaOPKB", constants=QUICK, patience=9, missing=0.25),
    "Master, patience": _made("Master", length=16, patience=9, missing="forget"),
    "BanditOverBandit, asked": _made("BanditOverBandit", block=20, order="asked", pending_limit=30),
    "GPUCB, many arms": _made("GPUCB", MANY),
    "SlidingWindowGPUCB, many arms": _made("SlidingWindowGPUCB", MANY, window=40),
    "TimeVaryingGPUCB, many arms": _made("TimeVaryingGPUCB", MANY, rate=0.01, beta="finite"),
    "WeightedGPUCB, anchored": _made("WeightedGPUCB", ROUGH, discount=0.98),
    "GLRklUCB, local": _made("GLRklUCB", restart="local", divergence="bernoulli", test_every=3, split_every=2),
    "LinearExp3, kernel": _made("LinearExp3", kernel=True, restart=70, pending_limit=9),
    "Master, windows": _made("Master", base="SlidingWindowUCB", base_settings={"window": 20}, length=16),
    "Master, theory": _made("Master", mode="theory", base="EventTriggeredGPUCB", length=8),
    "BanditOverBandit, discounts": _made("BanditOverBandit", base="DiscountedUCB", learner="exp3p", block=40),
    "BanditOverBandit, Exp3": _made("BanditOverBandit", base="LinearExp3", block=40),
}


ALL = SUBJECTS | VARIANTS


# --- states -----------------------------------------------------------------------------------------------------


def _reward(ident, arm):
    """Drifts a little, and jumps at rounds 90 and 170, so that detectors find something; often an end of the range."""
    world = (ident >= 90) + (ident >= 170)
    wave = np.sin(2.0 * arm + 2.5 * world) + 0.2 * np.sin(12.9898 * ident)
    return float(np.clip(wave, -1.0, 1.0))


def _tell(policy, ids, arms):
    for ident, arm in zip(ids.tolist(), arms.tolist(), strict=True):
        _if_open(policy, policy.tell, ident, _in_units(policy, _reward(ident, arm)))


def _in_units(policy, reward):
    low, high = policy.reward_range
    return min(max(low + 0.5 * (reward + 1.0) * (high - low), low), high)


def _if_open(policy, method, ident, *reward):
    """Tell or forget one decision, unless a small `pending_limit` has dropped it."""
    try:
        method(ident, *reward)
    except UnknownDecisionError:
        if not policy.dropped:
            raise


def moments(make):
    """States by name: before the start, at the start, early, with rewards pending, after changes, near the end."""
    policy = make()
    found = {"before": policy.state_dict()}
    policy.law()
    found["start"] = policy.state_dict()
    waiting = []
    for stop, name in ((7, "early"), (80, "middle"), (150, "changed"), (240, "late")):
        while policy.rounds < stop:
            batch = policy.ask(size=min(1 + policy.rounds % 3, stop - policy.rounds))
            waiting.append((batch.ids, batch.arms))
            if len(waiting) > (policy.rounds // 10) % 4:
                _tell(policy, *waiting.pop(0))
        if name != "middle":
            while waiting:
                _tell(policy, *waiting.pop())
        found[name] = policy.state_dict()
    batch = policy.ask(size=9)
    _tell(policy, batch.ids[4:6], batch.arms[4:6])
    found["pending"] = policy.state_dict()
    return found


# --- damage -----------------------------------------------------------------------------------------------------


def damages(state):
    """Damaged copies of a state, each with its name; the state itself is left alone."""
    for path, _ in _places(state):
        yield from _damages_at(state, path)


def _damages_at(state, path):
    value = state
    for key in path:
        value = value[key]
    where = ".".join(map(str, path))
    for name, wrong in _wrong_values(value):
        yield f"{where} = {name}", _with(state, path, wrong)
    if isinstance(value, dict):
        yield from ((f"{where} {name}", _with(state, path, wrong)) for name, wrong in _wrong_keys(value))


def sample(make, number, seed):
    """A few damaged states of a policy, with their names: places at random, and at each one kind of damage."""
    generator = np.random.default_rng(seed)
    found = moments(make)
    places = [(moment, path) for moment, state in found.items() for path, _ in _places(state)]
    for place in generator.permutation(len(places))[:number]:
        moment, path = places[place]
        wrong = list(_damages_at(found[moment], path))
        name, state = wrong[int(generator.integers(len(wrong)))]
        yield f"{moment}: {name}", state


def _places(value, path=()):
    """Every place in a state; of a long list its first, middle and last item."""
    if path:
        yield path, value
    if isinstance(value, dict):
        for key in value:
            yield from _places(value[key], (*path, key))
    elif isinstance(value, list):
        for number in sorted({0, len(value) // 2, len(value) - 1}) if value else ():
            yield from _places(value[number], (*path, number))


def _with(state, path, wrong):
    if not path:
        return wrong
    copy = state.copy()
    copy[path[0]] = _with(state[path[0]], path[1:], wrong)
    return copy


def changed_at(state, place, change):
    """A copy of the state in which the value at `place`, "engine.constants.c1" say, is changed."""
    path = tuple(int(key) if key.isdigit() else key for key in place.split("."))
    value = state
    for key in path:
        value = value[key]
    return _with(state, path, change(value))


def _wrong_keys(value):
    keys = list(value)
    for key in keys:
        yield f"without {key}", {name: item for name, item in value.items() if name != key}
    for one, other in itertools.pairwise(keys):
        yield f"with {one} and {other} exchanged", {**value, one: value[other], other: value[one]}


def _wrong_values(value):
    if isinstance(value, np.ndarray):
        yield from _wrong_arrays(value)
    elif isinstance(value, list):
        yield from (("[]", []), ("doubled", value + value), ("reversed", value[::-1]), ("last gone", value[:-1]))
    elif isinstance(value, dict):
        yield from (("{}", {}), ("[]", []))
    elif isinstance(value, bool):
        yield f"{not value}", not value
    elif isinstance(value, (int, float)):
        near = (value + 1, value - 1, 2 * value, value // 2, -value, float(value))
        far = (0, 1, -1, 2**31, 2**63 - 1, 2**70, 10**400, 1e300, -1e300, 1e-300, float("nan"), float("inf"))
        yield from ((repr(wrong)[:20], wrong) for wrong in (*near, *far) if repr(wrong) != repr(value))
    elif isinstance(value, str) and value.isdigit():  # of a random generator
        yield from ((wrong[:20], wrong) for wrong in ("0", "-1", str(int(value) + 1), str(2**128), "9" * 500, "x"))
    if value is not None:
        yield "None", None
    for name, wrong in (("'x'", "x"), ("True", True), ("5", 5)):
        if not isinstance(value, (int, float, np.ndarray)) or name != "5":
            yield name, wrong


def _wrong_arrays(value):
    if value.dtype.names:
        for name in value.dtype.names:
            for label, column in _wrong_numbers(value[name]):
                copy = value.copy()
                copy[name] = column
                yield f"{name} {label}", copy
    else:
        yield from _wrong_numbers(value)
    yield from _wrong_shapes(value)


def _wrong_numbers(value):
    """The same shape with other numbers."""
    generator = np.random.default_rng(0)
    whole = value.dtype.kind == "i"
    yield "zeros", np.zeros_like(value)
    yield "ones", np.ones_like(value)
    yield "negated", -value
    yield "shuffled", generator.permutation(value.ravel()).reshape(value.shape)
    for factor in (1 / 2, 1 + 1e-3, 1e6, 1e150, 1e-150):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield f"times {factor:g}", (value * factor).astype(value.dtype)
    far = (-1, 10**6, 2**31, 2**62, 2**63 - 1, -(2**63)) if whole else (-1.0, 50.0, 1e12, 1e300, -1e300, np.nan, np.inf)
    for place in sorted({0, value.size // 2, value.size - 1}) if value.size else ():
        for name, number in (
            *((f"entry {place} = {number:g}", number) for number in far),
            (f"entry {place} + 1", value.flat[place] + 1),
            (f"entry {place} - 1", value.flat[place] - 1),
            (f"entry {place} = 0", 0),
        ):
            copy = value.copy()
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                copy.flat[place] = number
            yield name, copy


def _wrong_shapes(value):
    yield "empty", value[:0]
    yield "without a row", value[:-1]
    yield "with a row twice", np.concatenate([value, value[-1:]])
    yield "backwards", value[::-1]
    yield "transposed", value.T.copy()
    yield "with an axis more", value[None]
    yield "flat", value.ravel()
    yield "a list", value.tolist()
    yield "of objects", value.astype(object)
    if not value.dtype.names:
        for kind in (np.float32, np.float64, np.int32, np.int64, np.complex128, np.bool_):
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield f"of {kind.__name__}", value.astype(kind)


# --- outcomes ---------------------------------------------------------------------------------------------------


class Hang(BaseException):
    """Raised into a policy that does not answer in time."""


def outcome(make, state, rounds=ROUNDS):
    """What becomes of a state: "refused", "played", the name of an allowed error, or how it failed.

    Settings that fail by themselves are "as built": a policy made with them does no better.
    """
    like, arms = (make.func if isinstance(make.func, type) else make.func.__self__), make.args[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)  # the library's own: a law short of its tolerance is a law
        try:
            policy = like.restore(arms, state)
        except StateError:
            return "refused"
        except (Exception, Hang) as error:  # noqa: BLE001  (all that can go wrong is what is asked for)
            return _told(error)
        failure = _failure(policy, rounds)
        settled = failure is None or failure in FINE
        if not settled and _failure(_built(like, arms, state), rounds) is not None:
            return "as built"
    return failure or "played"


def _failure(policy, rounds):
    """How playing on fails, None if it does not."""
    try:
        play_on(policy, rounds)
    except ALLOWED as error:
        return type(error).__name__
    except (Exception, Hang) as error:  # noqa: BLE001
        return _told(error)
    return None


def _told(error):
    return f"{type(error).__name__}: {error}"[:120] + f" in {_last_place(error)}"


def _built(like, arms, state):
    """A fresh policy with the settings of a state that could be restored."""
    names = ("horizon", "seed", "reward_range", "out_of_range", "pending_limit", "order", "patience", "missing")
    return like(arms, **{name: state[name] for name in names}, **like._read_settings(state["settings"]))


def _last_place(error):
    frames = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if "driftbandits" in code.co_filename:
            frames.append(f"{code.co_filename.rsplit('/', 1)[-1]}:{code.co_name}")
        trace = trace.tb_next
    return " < ".join(frames[::-1][:3])


def play_on(policy, rounds):
    """Single asks, batches, masks, late and lost rewards, looks at everything, and through the state again."""
    arms = policy.arms
    _settle_old(policy)
    size = len(arms)
    for number in range(rounds // 6):
        left = rounds if policy.horizon is None else policy.horizon - policy.rounds
        if left < 6:
            break
        one = policy.ask()
        policy.tell(one.id, _in_units(policy, _reward(one.id, one.arm)))
        masked = policy.ask(allowed=[number % size, (number + 2) % size])
        batch = policy.ask(size=4)
        _check_law(policy)
        if policy.pending > 4:  # two at once
            policy.tell(batch.ids[[2, 0]], [_in_units(policy, 0.5), _in_units(policy, -0.5)])
        else:
            _tell(policy, batch.ids[::2], batch.arms[::2])
        _if_open(policy, policy.forget, int(batch.ids[1]))
        _if_open(policy, policy.tell, masked.id, policy.reward_range[number % 2])
        _if_open(policy, policy.tell, int(batch.ids[3]), _in_units(policy, 0.25))
        _check_law(policy)
        if number in (1, 7):
            policy = type(policy).restore(arms, policy.state_dict())
    policy.explain() if hasattr(policy, "explain") else repr(policy)


def _settle_old(policy):
    """Tell some of what the state has pending, forget some, leave some."""
    rows = policy.state_dict()["pending"]
    for row in rows[::3]:
        policy.tell(int(row["id"]), _in_units(policy, 0.5))
    policy.forget(rows["id"][1::3])


def _check_law(policy):
    law = policy.law()
    fine = law.shape == (len(policy.arms),) and bool((law >= 0).all()) and abs(float(law.sum()) - 1.0) < 1e-6
    if not fine:
        raise AssertionError(f"not a law: {law}")
    if not np.isfinite(policy.estimate()).all():
        raise AssertionError("an estimate that is not finite")


# --- everything -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _time_limit(seconds):
    def stop(*_):
        raise Hang(f"no answer in {seconds} s")

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def main(argv=None):
    """Try everything (or every n-th) and print what fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="", help="part of the name of the damage")
    options = parser.parse_args(argv)
    with contextlib.suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
    total = collections.Counter()
    for name in options.names or ALL:
        make, counted, tried = ALL[name], collections.Counter(), 0
        for moment, state in moments(make).items():
            for damage, wrong in damages(state):
                tried += 1
                if tried % options.every or options.only not in damage:
                    continue
                with _time_limit(20):
                    result = outcome(make, wrong)
                kind = result if result in FINE else result.split(":")[0]
                counted[kind] += 1
                if result not in FINE:
                    print(f"{name} | {moment} | {damage} | {result}")
        total += counted
        print(f"# {name}: {dict(counted)}", flush=True)
    print(f"# all: {sum(total.values())} {dict(total)}")
    return any(kind not in FINE for kind in total)


if __name__ == "__main__":
    sys.exit(main())
