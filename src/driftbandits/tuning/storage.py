"""Where studies are kept: any database that Optuna's storages take, by URL; a file of SQLite by default."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from driftbandits.errors import DriftbanditsError, MissingExtraError
from driftbandits.showing import first_line

if TYPE_CHECKING:
    from optuna.storages import RDBStorage

OPENING_ATTEMPTS = 10  # two processes that make the tables of one SQLite file at once get in each other's way
SQLITE_WAIT_SECONDS = 60.0  # for a turn to write


class StorageError(DriftbanditsError):
    """The storage of a study cannot be opened, or was lost."""


@contextlib.contextmanager
def opened(url: str) -> Iterator[RDBStorage]:
    """The storage at `url`, closed afterwards. Raises StorageError when it cannot be reached, now or later."""
    try:
        import optuna
        import sqlalchemy.exc
    except ImportError:
        raise MissingExtraError("optuna", extra="tuning", purpose="tuning") from None
    name = repr(without_password(url))
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # it announces every study and trial
    try:
        storage = _connected(url)
    except ImportError as error:
        raise StorageError(
            f"cannot open the storage {name}: {_cause(error)}; install the database's driver with pip"
        ) from error
    except (sqlalchemy.exc.SQLAlchemyError, ValueError, RuntimeError) as error:
        raise StorageError(
            f"cannot open the storage {name}: {_cause(error)}; give a URL as Optuna takes it, such as "
            "sqlite:///folder/tuning.db or postgresql://user:password@host/name, of a database that is up"
        ) from error
    try:
        yield storage
    except (sqlalchemy.exc.SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        raise StorageError(
            f"lost the storage {name}: {_cause(error)}; what was recorded is kept, and the same command goes on"
        ) from error
    finally:
        storage.remove_session()
        storage.engine.dispose()


def _connected(url: str) -> RDBStorage:
    import sqlalchemy.exc
    from optuna.storages import RDBStorage

    if not url.startswith("sqlite"):
        return RDBStorage(url)
    for attempt in range(OPENING_ATTEMPTS):
        try:
            storage = RDBStorage(url, engine_kwargs={"connect_args": {"timeout": SQLITE_WAIT_SECONDS}})
            break
        except (sqlalchemy.exc.OperationalError, sqlalchemy.exc.IntegrityError) as error:
            if attempt + 1 == OPENING_ATTEMPTS or "unable to open" in str(error):
                raise
            time.sleep(0.1 * (attempt + 1))
    _take_turns(storage.engine)
    return storage


def _take_turns(engine: Any) -> None:
    """Let every transaction of SQLite lock the file at its beginning, and write to a log first.

    Optuna claims a trial by reading its state under SELECT FOR UPDATE, which SQLite ignores: without the lock two
    processes could both see a trial waiting, and both would take it. With the log (WAL) a write takes a fraction of a
    millisecond instead of 20; after a power failure the last of them may be missing, but the file is whole. It does not
    work over network file systems, which SQLite is not for: many machines need the URL of a database server.
    """
    from sqlalchemy import event

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None
        with contextlib.suppress(sqlite3.OperationalError):  # another process is just about to do the same
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")

    @event.listens_for(engine, "begin")
    def _lock(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    engine.dispose()  # connections made before do not know of this


def without_password(url: str) -> str:
    """The URL without its password.

    >>> without_password("postgresql://me:secret@host/name")
    'postgresql://me:***@host/name'
    """
    import sqlalchemy.exc

    try:
        return sqlalchemy.make_url(url).render_as_string(hide_password=True)
    except sqlalchemy.exc.ArgumentError:
        return url


def _cause(error: BaseException) -> str:
    """The first line of the innermost error, which is the database's own."""
    while error.__cause__ is not None:
        error = error.__cause__
    return first_line(error)
