"""What `compare` takes for policies, worlds and seeds, and what it says of the rest."""

import numpy as np
import pytest

import driftbandits as db
from driftbandits.comparing.contestants import read_policies
from driftbandits.comparing.playing import read_seeds
from driftbandits.comparing.worlds import read_worlds
from driftbandits.errors import InputError
from tests.comparing.small import SMALL, Greedy, Shifting, small_world

WORLD = small_world()


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        (db.AdaOPKB, ["ADA-OPKB"]),
        ("AdaOPKB", ["ADA-OPKB"]),
        ((db.GPUCB, {"beta": 1.0}), ["GPUCB (beta=1.0)"]),
        ((db.GPUCB, db.OPKB), ["GPUCB", "OPKB"]),
        ([Greedy, (Greedy, {"rate": 0.5})], ["Greedy", "Greedy (rate=0.5)"]),
        ({"a": Greedy, "b": ("AdaOPKB", {"constants": "published"}), "c": (Greedy, {"rate": 0.2})}, ["a", "b", "c"]),
        ({"made": lambda arms, **settings: Greedy(arms, rate=0.3, **settings)}, ["made"]),
        (("AdaOPKB", {"constants": db.Constants.published()}), None),
    ],
)
def test_forms_of_policies(given, labels):
    found = read_policies(given)
    assert labels is None or [one.label for one in found] == labels
    for one in found:
        policy = one.build(WORLD, 3, {"out_of_range": "clip"})
        assert isinstance(policy, db.Policy)
        assert (policy.horizon, policy.out_of_range) == (200, "clip")


def policy_file(folder, label):
    """A file with a class called Mine, and a function that makes one."""
    file = folder / "mine.py"
    body = f"label = {label!r}" if label is not None else "pass"
    function = "def made(arms, **settings):\n    return Mine(arms, **settings)\n"
    file.write_text(f"import driftbandits as db\n\n\nclass Mine(db.Uniform):\n    {body}\n\n\n{function}")
    return file


@pytest.mark.parametrize(("own", "label"), [(None, "Mine"), ("My policy", "My policy")])
def test_a_policy_from_a_file_has_the_label_of_its_class(tmp_path, own, label):
    (one,) = read_policies(f"{policy_file(tmp_path, own)}:Mine")
    assert one.label == label
    assert type(one.build(WORLD, 0, {})).__name__ == "Mine"
    (given,) = read_policies({"given": f"{policy_file(tmp_path, own)}:Mine"})
    assert given.label == "given"


def test_a_function_from_a_file_has_its_name(tmp_path):
    (one,) = read_policies(f"{policy_file(tmp_path, 'My policy')}:made")
    assert one.label == "made"


@pytest.mark.parametrize("name", db.policies.POLICIES)
def test_a_name_and_its_class_have_one_label(name):
    ((by_name,), (by_class,)) = read_policies(name), read_policies(db.policies.POLICIES[name])
    assert by_name.label == by_class.label


@pytest.mark.parametrize(("label", "message"), [(5, "the label of a policy is a text, got 5"), ("", "'' is blank")])
def test_labels_of_classes_that_cannot_be_shown_are_refused(tmp_path, label, message):
    odd = type("Odd", (Greedy,), {"label": label})
    for given in (odd, (odd, {"rate": 0.2}), f"{policy_file(tmp_path, label)}:Mine"):
        with pytest.raises(InputError, match=message):
            read_policies(given)


def test_a_blank_label_is_refused_rather_than_replaced():
    with pytest.raises(InputError, match="label of a policy '' is blank"):
        read_policies({"": db.Uniform})
    for world in (WORLD, "switching/1", small_world):
        with pytest.raises(InputError, match="label of a world '' is blank"):
            read_worlds({"": world})


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        (WORLD, ["switching/1"]),
        ("cosine/slow", ["cosine/slow"]),
        (("switching/1", SMALL), ["switching/1 (horizon=200, switches=[100], size=8)"]),
        ([Shifting, (Shifting, {"horizon": 90})], ["Shifting", "Shifting (horizon=90)"]),
        ({"one": WORLD, "two": small_world(1), "drawn": small_world}, ["one", "two", "drawn"]),
        ("suite/heavy-tails/d2", ["suite/heavy-tails/d2"]),
        ("real/digits", ["real/digits"]),
        ("real/digits/reversed", ["real/digits/reversed"]),
    ],
)
def test_forms_of_worlds(given, labels):
    found = read_worlds(given)
    assert [one.label for one in found] == labels
    for one in found:
        assert isinstance(one.build(1), db.environments.Environment)


def test_an_object_is_the_same_on_every_seed_and_a_name_draws_one_per_seed():
    (told,), (named,) = read_worlds(WORLD), read_worlds(("switching/1", SMALL))
    assert told.build(0) is told.build(1) is WORLD
    assert (named.build(0).means(0) == small_world(0).means(0)).all()
    assert (named.build(0).means(0) != named.build(1).means(0)).any()


def test_the_world_of_an_experiment_brings_what_policies_need_there():
    (world,) = read_worlds("suite/heavy-tails/d2")
    assert world.common == {"out_of_range": "clip"}
    assert world.build(0).arms.points.shape[1] == 2


def test_seeds():
    assert read_seeds(np.int64(2)) == read_seeds(range(2)) == read_seeds(np.arange(2)) == (0, 1)
    assert read_seeds([2**63 - 1, np.int64(3)]) == (2**63 - 1, 3)


@pytest.mark.parametrize(
    "wrong",
    [
        *(0, -1, 2.5, True, None, "12", b"ab", {"a": 1}, np.array(2), np.zeros((2, 2), dtype=int)),
        *([], [1, 1], [1, np.int64(1)], [0, None], [-1], [0.5], [[1]], [2**63]),
    ],
    ids=repr,
)
def test_what_cannot_be_seeds_is_refused(wrong):
    with pytest.raises(InputError, match="seed"):
        read_seeds(wrong)


@pytest.mark.parametrize(
    ("policies", "worlds", "message"),
    [
        (Greedy(WORLD.arms), WORLD, "give the class, not a Greedy that is built already"),
        ("GPUBC", WORLD, "did you mean 'GPUCB'"),
        ("no_such.py:Mine", WORLD, "there is no file 'no_such.py'"),
        (3, WORLD, "a policy is a class derived from driftbandits.Policy"),
        (Shifting, WORLD, "a policy is a class derived from driftbandits.Policy"),
        (lambda arms, **settings: db.Uniform(arms, **settings), WORLD, "needs a label"),
        ({"x": lambda arms, **settings: 3}, WORLD, "must give a driftbandits Policy"),
        ((db.GPUCB, {"bet": 1.0}), WORLD, "did you mean 'beta'"),
        ((db.GPUCB, {"horizon": 10}), WORLD, "set the horizon of the environment"),
        ([db.Uniform, "Uniform"], WORLD, "a policy called 'Uniform' is there twice"),
        ([], WORLD, "no policy to compare"),
        ({" ": db.Uniform}, WORLD, "blank"),
        (db.Uniform, [WORLD, WORLD], "a world called 'switching/1' is there twice"),
        (db.Uniform, {3: WORLD}, "the label of a world is a text"),
        (db.Uniform, "swiching/1", "did you mean 'switching/1'"),
        (db.Uniform, ("switching/1", {"horizn": 3}), "did you mean 'horizon'"),
        (db.Uniform, ("switching/1", {"seed": 3}), "the seeds are those of the comparison"),
        (db.Uniform, (WORLD, {"horizon": 3}), "built already"),
        (db.Uniform, 3, "a world is an environment"),
        (db.Uniform, {"x": lambda seed: 3}, "must give a driftbandits Environment"),
        (db.Uniform, "real/nothing", "no world is called 'real/nothing'"),
    ],
)
def test_misuse_is_said_with_its_cure_before_anything_is_played(policies, worlds, message):
    with pytest.raises(InputError, match=message):
        db.compare(policies, worlds, seeds=2, jobs=1)


def test_seeds_of_real_series_are_their_offsets():
    with pytest.raises(InputError, match="start offsets"):
        db.compare(db.Uniform, "real/digits", seeds=[0, 999], jobs=1)
