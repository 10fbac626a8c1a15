import sqlite3
import sys

import pytest

from driftbandits.errors import DriftbanditsError, MissingExtraError
from driftbandits.tuning.study import StorageError, opened
from tests.tuning.small import SMALL, play


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:////nowhere/at/all/tuning.db",
        "no url",
        "nodialect://host/name",
        "postgresql+nodriver://user:secret@localhost:1/name",
        "redis://localhost",
    ],
)
def test_an_unreachable_storage_is_one_clear_error(url):
    with pytest.raises(StorageError, match="cannot open the storage") as error, opened(url):
        pass
    assert isinstance(error.value, DriftbanditsError)
    assert "secret" not in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_driver_is_to_be_installed():
    with (
        pytest.raises(StorageError, match=r"oracledb.*install the database.s driver"),
        opened("oracle://me:secret@host/name"),
    ):
        pass


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "tuning.db").write_text("something else entirely, and long enough to be read as a header" * 10)
    with pytest.raises(StorageError, match="not a database"), opened(f"sqlite:///{tmp_path / 'tuning.db'}"):
        pass


def test_a_storage_lost_in_between(tmp_path, url):
    def lose(_):
        with sqlite3.connect(tmp_path / "tuning.db") as database:
            database.execute("DROP TABLE trial_user_attributes")
        database.close()

    with pytest.raises(StorageError, match="the same command goes on"):
        play([SMALL], url, progress=lose)


def test_without_optuna_the_extra_is_named(monkeypatch, url):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"\.\[tuning\]"):
        play([SMALL], url)
