import pytest


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'tuning.db'}"
