"""Pinned versions: the same in every environment, and in each what is needed there and no more."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, GROUPS = CONFIGURATION["project"], CONFIGURATION["dependency-groups"]
BUILD = ["setuptools"]  # the library itself is installed without the help of an index
LINUX = {"extra": "", "sys_platform": "linux", "platform_system": "Linux"}
EXTRAS_OF = {"core": [], "reproduce": ["experiments"]}


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned(file):
    lines = (ROOT / "requirements" / f"{file}.txt").read_text().splitlines()
    pairs = (line.partition(";")[0].split("==") for line in lines)  # behind the semicolon: for which Pythons
    return {canonical(name): version for name, version in pairs}


def with_all_they_need(names):
    """These packages and what they require in turn, as the metadata of those installed says."""
    found, left = set(), list(names)
    while left:
        name = canonical(left.pop())
        if name not in found:
            found.add(name)
            needed = map(Requirement, metadata.requires(name) or [])
            left += [other.name for other in needed if other.marker is None or other.marker.evaluate(LINUX)]
    return found


@pytest.mark.parametrize("file", EXTRAS_OF)
def test_versions_are_those_that_are_tested(file):
    assert pinned(file).items() <= pinned("dev").items()


@pytest.mark.parametrize(("file", "extras"), EXTRAS_OF.items())
def test_an_environment_has_what_it_needs_and_no_more(file, extras):
    listed = [*PROJECT["dependencies"], *(line for extra in extras for line in PROJECT["optional-dependencies"][extra])]
    assert set(pinned(file)) == with_all_they_need([*BUILD, *(Requirement(line).name for line in listed)])


def test_documentation_is_built_beside_what_is_tested():
    """Both lists go into one environment: no package stands in both, and together they are whole."""
    assert not pinned("docs").keys() & pinned("dev").keys()
    named = {canonical(Requirement(line).name) for line in GROUPS["docs"]}
    assert named - {"driftbandits"} <= pinned("docs").keys()


def test_what_a_release_is_checked_with_is_pinned():
    versions = pinned("release")
    for requirement in map(Requirement, GROUPS["release"]):
        assert requirement.specifier.contains(versions[canonical(requirement.name)]), requirement


@pytest.mark.parametrize("file", ["core", "data", "dev", "docs", "reproduce"])
def test_pinned_versions_fit_the_declared_ranges(file):
    versions = pinned(file)
    extras = [*PROJECT["optional-dependencies"].values(), GROUPS["dev"], GROUPS["docs"]]
    declared = [Requirement(line) for lines in (PROJECT["dependencies"], *extras) for line in lines]
    for requirement in declared:
        if (version := versions.get(canonical(requirement.name))) is not None:
            assert requirement.specifier.contains(version), f"{requirement} has no {version}"
