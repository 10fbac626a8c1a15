"""Pages say what their files of results say."""

import dataclasses

import pytest

from driftbandits.errors import InputError
from driftbandits.experiments.seeds import EVALUATION
from reproduction.measured import (
    MARK,
    MEASURES,
    PAGES,
    RESULTS,
    fill_pages,
    filled,
    main,
    new_measurement,
    read_measurement,
    write_measurement,
)

MARKED = {page: text for page in PAGES.rglob("*.md") if MARK.search(text := page.read_text(encoding="utf-8"))}


def test_every_marked_number_is_that_of_its_file():
    assert MARKED
    for page, text in MARKED.items():
        assert filled(text) == text, f"{page} has other numbers than reproduction/results; python -m reproduction fill"


def test_every_file_says_how_it_was_measured_and_is_used():
    used = {found[2] for text in MARKED.values() for found in MARK.finditer(text)}
    assert used == {path.stem for path in RESULTS.glob("*.json")} == set(MEASURES)
    for name in used:
        found = read_measurement(name)
        assert found.command == f"python -m reproduction measure {name}"
        assert EVALUATION.holds(found.seeds)
        assert found.seeds
        assert all(isinstance(number, int) for number in found.behaviour.values())
        assert "blas" in found.fingerprint.lower() or found.fingerprint


@pytest.fixture
def folder(tmp_path):
    made = new_measurement("small", {"regret": 1234.5}, seeds=(2_000_000,), policies=["AutoBandit"])
    write_measurement("small", made, folder=tmp_path)
    assert read_measurement("small", folder=tmp_path) == made
    return tmp_path


def test_pages_are_filled_and_a_wrong_number_is_noticed(folder):
    page = folder / "page.md"
    page.write_text("It is <!--result small regret ,.0f-->1<!--/result--> here, and 1 there.")
    assert fill_pages(folder, folder=folder) == [page]
    assert page.read_text() == "It is <!--result small regret ,.0f-->1,234<!--/result--> here, and 1 there."
    assert fill_pages(folder, folder=folder) == []


def test_what_is_not_there_is_said(folder):
    for mark, message in (("smal regret", "did you mean 'small'"), ("small regrets", "did you mean 'regret'")):
        with pytest.raises(InputError, match=message):
            filled(f"<!--result {mark} d-->1<!--/result-->", folder=folder)
    (folder / "small.json").write_text("{}")
    with pytest.raises(InputError, match="is no file of results"):
        read_measurement("small", folder=folder)
    with pytest.raises(InputError, match="nothing called 'spreat' is measured; did you mean 'spread'"):
        main(["measure", "spreat"])


def test_a_measurement_is_what_a_reader_needs_to_repeat_it():
    names = {field.name for field in dataclasses.fields(read_measurement(next(iter(MEASURES))))}
    assert names == {"command", "date", "version", "fingerprint", "seeds", "behaviour", "numbers"}
