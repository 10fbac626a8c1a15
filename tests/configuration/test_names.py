import pytest

from driftbandits.configuration.models import MOST_NAME_BYTES, check_name, folder_name
from driftbandits.errors import InputError
from driftbandits.experiments.run_files import read_experiment
from reproduction.groups import EXPERIMENTS

PLAIN = "environment: switching/1\npolicies: [OPKB]\n"


@pytest.mark.parametrize(
    "name", ["..", ".", "a/../b", "../a", "/etc", "a//b", "a/", ".git", "~", "\\\\", "con", "NUL.txt"]
)
def test_names_that_lead_elsewhere_are_refused(name):
    with pytest.raises(InputError, match="cannot name a folder") as caught:
        folder_name(name)
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("  ", "is blank"),
        ("a\nb", "control character '\\\\n'"),
        ("a\x1b[31m", "control character '\\\\x1b'"),
        ("a\0b", "control character"),
        ("\ud800", "control character"),
        ("a" * (MOST_NAME_BYTES + 1), "201 bytes; it may have 200"),
        ("\N{SNOWMAN}" * MOST_NAME_BYTES, "600 bytes"),
    ],
)
def test_names_that_break_a_table_are_refused(name, cause):
    with pytest.raises(InputError, match=cause):
        check_name(name, "label")
    with pytest.raises(InputError, match=cause):
        folder_name(name)


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("mine", "mine"),
        ("My run 2", "My run 2"),
        ("a..b", "a..b"),
        ("été", "été"),
        ("a:b*c?", "a-b-c"),
        ("a\\..\\b", "a-..-b"),
    ],
)
def test_others_name_one_folder(name, folder):
    assert folder_name(name) == folder


def test_the_catalogue_has_names_for_folders():
    assert len({folder_name(name) for name in EXPERIMENTS}) == len(EXPERIMENTS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'id: ".."\n{PLAIN}', "file.yaml: id '..' cannot name a folder"),
        (f'title: "a\\u001b[2Jb"\n{PLAIN}', r"file.yaml: title 'a\x1b[2Jb' has the control character '\x1b'"),
        (PLAIN.replace("OPKB", '{name: OPKB, label: "a\\nb"}'), r"file.yaml: label 'a\nb' has the control character"),
    ],
)
def test_a_file_with_such_a_name_is_refused(tmp_path, text, said):
    file = tmp_path / "file.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        read_experiment(file)
    assert said in str(caught.value)
