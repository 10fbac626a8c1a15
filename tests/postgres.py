"""A real Postgres server for tests, from the wheel pgserver."""

import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

pgserver = pytest.importorskip("pgserver", reason="pgserver has wheels for Python below 3.13 only")


@contextmanager
def postgres_server():
    """A server in a folder of its own.

    Not in pytest's: for root, Postgres runs as another user, who must get there, and every pytest that starts closes
    its folders to others.
    """
    with tempfile.TemporaryDirectory() as folder:
        server = pgserver.get_server(Path(folder))
        try:
            yield server
        finally:
            server.cleanup()
