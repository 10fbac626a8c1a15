"""Pages say what their files of results say."""

import dataclasses
import re
from typing import get_args

import pytest

from driftbandits._util.intervals import t_interval
from driftbandits.datasets import OFFSETS
from driftbandits.errors import InputError
from driftbandits.experiments.building import build_world
from driftbandits.experiments.seeds import EVALUATION
from reproduction.claims import Claim, ClaimVerdict, make_check
from reproduction.measured import (
    MARK,
    MEASURED_WIDTH,
    MEASURES,
    NETWORK_SEEDS,
    PAGES,
    RESULTS,
    TABLE,
    _drawn_phase,
    _measured,
    fill_pages,
    filled,
    key_of,
    main,
    new_measurement,
    numbers_of,
    read_measurement,
    write_measurement,
)
from reproduction.paper import FIGURES

MARKED = {page: text for page in PAGES.rglob("*.md") if MARK.search(text := page.read_text(encoding="utf-8"))}


def test_every_marked_number_is_that_of_its_file():
    assert MARKED
    for page, text in MARKED.items():
        assert filled(text) == text, f"{page} has other numbers than reproduction/results; python -m reproduction fill"


def test_every_file_says_how_it_was_measured_and_is_used():
    used = {found[2] for text in MARKED.values() for kind in (MARK, TABLE) for found in kind.finditer(text)}
    assert used == {path.stem for path in RESULTS.glob("*.json")} == set(MEASURES)
    for name in used:
        found = read_measurement(name)
        assert found.command == f"python -m reproduction measure {name}"
        assert found.seeds
        assert EVALUATION.holds(found.seeds) or found.seeds == tuple(range(OFFSETS))  # of a real series, start offsets
        assert all(isinstance(number, int) for number in found.behaviour.values())
        assert "blas" in found.fingerprint.lower() or found.fingerprint


@pytest.fixture
def folder(tmp_path):
    lines = ["| policy | regret |", "| --- | ---: |", "| mine | 1 |"]
    made = new_measurement(
        "small", {"regret": 1234.5}, seeds=(2_000_000,), policies=["AutoBandit"], tables={"all": lines}
    )
    write_measurement("small", made, folder=tmp_path)
    assert read_measurement("small", folder=tmp_path) == made
    return tmp_path


def test_pages_are_filled_and_a_wrong_number_is_noticed(folder):
    page = folder / "page.md"
    page.write_text("It is <!--result small regret ,.0f-->1<!--/result--> here, and 1 there.")
    assert fill_pages(folder, folder=folder) == [page]
    assert page.read_text() == "It is <!--result small regret ,.0f-->1,234<!--/result--> here, and 1 there."
    assert fill_pages(folder, folder=folder) == []
    page.write_text("Before.\n\n<!--table small all-->\n| old |\n<!--/table-->\n\nAfter.\n")
    assert fill_pages(folder, folder=folder) == [page]
    text = "<!--table small all-->\n| policy | regret |\n| --- | ---: |\n| mine | 1 |\n<!--/table-->"
    assert page.read_text() == f"Before.\n\n{text}\n\nAfter.\n"


def test_what_is_not_there_is_said(folder):
    for mark, message in (("smal regret", "did you mean 'small'"), ("small regrets", "did you mean 'regret'")):
        with pytest.raises(InputError, match=message):
            filled(f"<!--result {mark} d-->1<!--/result-->", folder=folder)
    with pytest.raises(InputError, match="did you mean 'all'"):
        filled("<!--table small al-->\n<!--/table-->", folder=folder)
    (folder / "small.json").write_text("{}")
    with pytest.raises(InputError, match="is no file of results"):
        read_measurement("small", folder=folder)
    with pytest.raises(InputError, match="nothing called 'spreat' is measured; did you mean 'spread'"):
        main(["measure", "spreat"])


def test_a_measurement_is_what_a_reader_needs_to_repeat_it():
    names = {field.name for field in dataclasses.fields(read_measurement(next(iter(MEASURES))))}
    assert names == {"command", "date", "version", "fingerprint", "seeds", "behaviour", "numbers", "tables"}


def test_verdicts_on_the_page_of_claims_are_those_of_its_file():
    """The word in bold behind every claim of a figure, and of those about linear bandits."""
    for page, name, claims in (("claims", "paper", "F"), ("claims", "growth", "T"), ("linear", "linear", "LB-")):
        numbers = read_measurement(name).numbers
        text = (PAGES / "evidence" / f"{page}.md").read_text(encoding="utf-8")
        rows = re.findall(
            r"^\| (\S+?)(?:, our reading)? \| [^|]+ \| (?:<!--.*?-->)?\*\*([^*]+)\*\*", text, re.MULTILINE
        )
        found = dict([*rows, *re.findall(r"(T\d) \([^)]*(?:\([^)]*\)[^)]*)?\):\s\*\*([^*]+)\*\*", text)])
        meant = {
            key.removesuffix(".verdict"): get_args(ClaimVerdict)[int(place)]
            for key, place in numbers.items()
            if key.endswith(".verdict") and key.startswith(claims)
        }
        assert meant
        assert {claim: found[claim] for claim in meant} == meant


def test_numbers_of_claims_are_their_checks_and_verdicts():
    interval = t_interval([1.0, 2.0, 3.0])
    check = make_check("X", ["any"], "s", interval, "does not hold", unit="regret", brief="A (b) below C")
    silent = make_check("X", ["any"], "s", t_interval([]), "not run", unit="regret", brief="nobody")
    numbers = numbers_of([Claim("X", "1", "Something.", (check,)), Claim("Y", "1", "Nothing.", (silent,))])
    assert numbers == {
        "X.a-b-below-c.estimate": 2.0,
        "X.a-b-below-c.low": interval.low,
        "X.a-b-below-c.high": interval.high,
        "X.verdict": 1.0,
        "Y.verdict": 3.0,
    }
    assert key_of("A (b) below C") == "a-b-below-c"


def test_networks_are_measured_narrower_and_all_else_as_in_the_catalogue_on_fewer_seeds():
    for figure in FIGURES.values():
        measured = _measured(figure)
        assert measured.seeds == figure.seeds[:16]
        for before, after in zip(figure.policies, measured.policies, strict=True):
            if before.settings.get("width") == 2048:
                assert (after.settings["width"], after.seeds) == (MEASURED_WIDTH, NETWORK_SEEDS[before.name])
            assert {**after.settings, **before.settings} == before.settings
            assert (after.label, after.kernel) == (before.label, before.kernel)


def test_a_drawn_phase_is_another_world_for_every_seed():
    figure = FIGURES["cosine/stationary"]
    worlds = [build_world("cosine/stationary", _drawn_phase(figure.settings, seed), seed) for seed in (0, 0, 1)]
    assert [float(world.phases[0]) for world in worlds[:2]] == [float(worlds[0].phases[0])] * 2
    assert worlds[0].phases[0] != worlds[2].phases[0]
    assert all((world.phases == world.phases[0]).all() for world in worlds)
    still = build_world("cosine/stationary", figure.settings, 0)
    assert (still.arms.points == worlds[0].arms.points).all()
