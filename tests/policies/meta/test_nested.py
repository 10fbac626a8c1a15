"""How MASTER and BOB find a base by its name."""

import pytest

import driftbandits as db
from driftbandits.errors import InputError
from driftbandits.policies.core.optimistic import OptimisticPolicy
from driftbandits.policies.meta.nested import find_base


def mine(name, *parents):
    return type(name, parents, {})


@pytest.mark.parametrize("name", db.POLICIES)
def test_every_policy_of_the_library_is_found(name):
    assert find_base(name, db.Policy) is db.POLICIES[name]


def test_a_policy_of_the_library_comes_before_one_of_yours():
    other = mine("GPUCB", db.GPUCB)
    assert find_base("GPUCB", OptimisticPolicy) is db.GPUCB
    assert find_base(other, OptimisticPolicy) is other


def test_of_two_of_your_own_the_later_is_found():
    classes = [mine("TwiceDefined", db.GPUCB) for _ in range(2)]
    assert find_base("TwiceDefined", OptimisticPolicy) is classes[1]


def test_a_policy_of_another_kind_is_refused():
    for base in ("OPKB", db.OPKB):
        with pytest.raises(InputError, match="a class of OptimisticPolicy or its name"):
            find_base(base, OptimisticPolicy)
