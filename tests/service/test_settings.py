"""Settings by flag, environment variable and file, in this order; and the table that documents them."""

import re

import pytest

from driftbandits.cli import live
from driftbandits.errors import InputError
from driftbandits.service.settings import PREFIX, Settings, read_settings
from tests.pages import ROOT


def test_flags_then_environment_then_file(tmp_path, monkeypatch):
    file = tmp_path / "service.toml"
    file.write_text('port = 1\nhost = "127.0.0.2"\nlog_level = "debug"\n')
    monkeypatch.setenv("DRIFTBANDITS_HOST", "127.0.0.3")
    monkeypatch.setenv("DRIFTBANDITS_PORT", "2")
    found = read_settings({"port": 3, "host": None}, file)
    assert (found.port, found.host, found.log_level) == (3, "127.0.0.3", "debug")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"port": 70000}, "port"),
        ({"log_level": "loud"}, "must be one of debug"),
        ({"advertise": "10.0.0.1"}, "must be a URL"),
        ({"most_body": 1}, "most_body"),
    ],
)
def test_wrong_values_say_so(given, words):
    with pytest.raises(InputError, match=words):
        read_settings(given)


def test_wrong_files_say_so(tmp_path):
    file = tmp_path / "service.toml"
    file.write_text("prot = 1")
    with pytest.raises(InputError, match="did you mean 'port'"):
        read_settings({}, file)
    file.write_text("=")
    with pytest.raises(InputError, match="is not TOML"):
        read_settings({}, file)


@pytest.mark.parametrize(
    ("host", "local"), [("127.0.0.1", True), ("localhost", True), ("::1", True), ("0.0.0.0", False)]
)
def test_which_hosts_are_this_machine(host, local):
    assert read_settings({"host": host}).is_local is local


def test_every_setting_is_a_flag_and_stands_in_the_table():
    flags = set(live.serve.__annotations__) - {"config", "return"}
    assert flags == set(Settings.model_fields)
    page = (ROOT / "docs" / "service.md").read_text()
    rows = re.findall(r"^\| `--([\w-]+)` \| `(\w+)` \| `(.*?)` \|", page, flags=re.MULTILINE)
    assert {flag.replace("-", "_") for flag, _, _ in rows} == flags
    for flag, variable, usual in rows:
        name = flag.replace("-", "_")
        assert variable == f"{PREFIX}{name.upper()}"
        assert usual == (
            "none" if Settings.model_fields[name].default is None else str(Settings.model_fields[name].default)
        )


def test_a_misspelt_variable_is_refused(monkeypatch):
    monkeypatch.setenv("DRIFTBANDITS_PROT", "1")
    monkeypatch.setenv("DRIFTBANDITS_FRIENDS", "of another program")
    with pytest.raises(InputError, match=r"DRIFTBANDITS_PROT.*did you mean 'DRIFTBANDITS_PORT'"):
        read_settings({})


def test_a_file_that_is_no_text_is_named(tmp_path):
    file = tmp_path / "service.toml"
    file.write_bytes(b"port = \xff")
    with pytest.raises(InputError, match=r"service\.toml is not TOML"):
        read_settings({}, file)
