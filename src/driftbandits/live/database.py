"""A database of experiments: opened by its URL, experiments made, listed and opened in it."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import sqlalchemy as sa

from driftbandits._util.checks import check_positive
from driftbandits.errors import (
    ExperimentExistsError,
    KeyReusedError,
    LiveError,
    UnknownExperimentError,
    did_you_mean,
)
from driftbandits.live import tables
from driftbandits.live.connections import (
    APART,
    SESSIONS,
    WRITING,
    FileLock,
    identity_of,
    is_read_only,
    make_engine,
    read_url,
    sqlite_file,
)
from driftbandits.live.definition import Definition, check_name, check_visible, define
from driftbandits.live.experiment import Experiment
from driftbandits.live.journal import Event, Journal
from driftbandits.live.leases import Leases, Link, new_holder
from driftbandits.live.requests import clock, owned
from driftbandits.live.views import View
from driftbandits.live.writer import Writer
from driftbandits.text import first_line, shown


class Database:
    """Experiments in one database; a context manager that closes what it opened.

    Any number of `Database` objects may read the same database. One process at a time decides in a SQLite file; in
    Postgres one per experiment. `driftbandits.live.open` makes one and its tables.

    Parameters
    ----------
    url, pragmas, address, clock : as in `driftbandits.live.open`

    Raises
    ------
    InputError
        For a URL that is neither SQLite nor Postgres.

    >>> import tempfile
    >>> import driftbandits as db
    >>> with tempfile.TemporaryDirectory() as folder, db.live.open(f"sqlite:///{folder}/shop.db") as database:
    ...     shop = database.create("prices", arms={"9 EUR": [9], "12 EUR": [12], "14 EUR": [14]}, seed=0)
    ...     database.names(), shop.decide(allowed=["9 EUR"]).arm
    (['prices'], '9 EUR')
    """

    def __init__(
        self,
        url: str,
        *,
        pragmas: Mapping[str, Any] | None = None,
        address: str | None = None,
        clock: Callable[[], int] = clock,
    ) -> None:
        self.url = read_url(url)
        self._clock = clock
        self.address = address
        self._text = self.url.render_as_string(hide_password=False)
        holder = new_holder()
        self._reading = make_engine(self.url, pragmas, holder=holder)
        self._writing = self._reading.execution_options(**{WRITING: True})
        self._identity: tuple[int, int] | None = None  # of the file that was opened
        self._is_sqlite = self.url.get_backend_name() == "sqlite"
        self._file = sqlite_file(self.url) if self._is_sqlite else None
        self._file_lock = None if self._file is None else FileLock(self._file)
        # Writers of one SQLite file take turns here; SQLite's own way to wait is polling.
        self._turn: contextlib.AbstractContextManager[Any] = (
            threading.Lock() if self._is_sqlite else contextlib.nullcontext()
        )
        self._held: sa.Connection | None = None  # for writing, where writers take turns
        # For what must not wait for a session: heartbeat and keys.
        self.apart = self._reading if self._is_sqlite else make_engine(self.url, holder=holder, sessions=APART)
        self._leases = None if self._is_sqlite else Leases(self._reading, self.apart, holder, address)
        self._opened: dict[str, Experiment] = {}
        self._turns: dict[str, threading.Lock] = {}  # one opening of an experiment at a time, and none waits for others
        self._guard = threading.Lock()
        self._closed = False

    # --- schema -------------------------------------------------------------------------------------------------

    def prepare(self, *, create: bool) -> None:
        """Create the tables of an empty database, if wanted; refuse a database with another schema.

        Parameters
        ----------
        create : whether to make tables where there are none

        Raises
        ------
        SchemaError
            For a database of another version, or without tables.
        LiveError
            If there is no such file, and none is to be made.
        """
        if self._file is not None and not create and not self._file.exists():
            raise LiveError(f"there is no database {self._file}; experiments create makes one")
        with self._reading.connect() as connection:
            found = tables.present(connection)
        if found is None and create and not (self._is_sqlite and is_read_only(self.url)):
            self.upgrade()
        with self._reading.connect() as connection:
            tables.check(connection)
            if not self._is_sqlite:
                _check_sessions(connection)
        self._identity = None if self._file is None else identity_of(self._file)

    def upgrade(self) -> list[str]:
        """Bring the database to the schema of this version.

        Returns
        -------
        list of str
            The steps that were made.

        Raises
        ------
        SchemaError
            For tables that are not driftbandits', or of a later version.
        """
        with self.writing() as connection:
            return tables.upgrade(connection)

    def check_file(self) -> None:
        """Check that a SQLite file is still the one that was opened; in Postgres this does nothing.

        Raises
        ------
        LiveError
            If it was deleted or replaced: what is written from then on is lost when this process ends.
        """
        if self._file is not None and self._identity is not None and identity_of(self._file) != self._identity:
            raise LiveError(
                f"the database file {self._file} was deleted or replaced while it was in use, so nothing "
                f"can be stored; stop this process, put the right file there, and start it again"
            )

    # --- experiments --------------------------------------------------------------------------------------------

    def create(self, name: str, **fields: Any) -> Experiment:
        """Make an experiment and open it.

        Parameters
        ----------
        name : of the new experiment
        fields : by name, those that follow; all but `arms` may be left out
        arms : names; or mappings with "name" and "features"; or a mapping of names to features
        policy : name of a policy, AutoBandit by default
        settings : of the policy, as a mapping
        segments : kinds of requests, given as arms are
        contexts : what is known of each request, a `Contexts` or its `to_dict()`; then `decide` wants a context
        kernel : how alike arms are, as {"name": "rbf", ...}; by default a guess from their features
        reward_range : (low, high), (0, 1) by default; that of a policy by itself is (-1, 1)
        patience : seconds after which a decision without a reward counts as missing; None waits for ever
        missing : the reward that such a decision counts with: a number within the range, or "forget"
        fallback : the arm that is played when the policy cannot decide; None plays any active one
        seed : of all randomness; None draws one

        Returns
        -------
        Experiment

        Raises
        ------
        InputError
            For unknown fields and invalid values.
        ExperimentExistsError
            If the name is taken.
        OtherDeciderError
            If another process decides in this SQLite file.
        LiveError
            If the database cannot be written to.
        """
        self.make(name, define(**fields))
        return self.experiment(name)

    def make(
        self, name: str, definition: Definition, *, key: str | None = None, owner: str = "", digest: str = ""
    ) -> None:
        """Make an experiment and leave it closed.

        Parameters
        ----------
        name : of the experiment
        definition : what it is made with
        key : an idempotency key; the same request may then be repeated
        owner : whose key it is, where several callers choose keys
        digest : of the request, to recognise a repetition

        Raises
        ------
        ExperimentExistsError
            If the name is taken.
        KeyReusedError
            If the key was used with another request.
        LiveError
            If the database cannot be written to.
        """
        check_name("the name of an experiment", name)
        check_visible("the name of an experiment", [name])
        table, now = tables.experiments, self._clock()
        text, token, key = definition.to_json(), secrets.token_hex(8), owned(key, owner)
        self.check_file()
        try:
            with self.writing() as connection:
                made = connection.execute(sa.insert(table).values(name=name, created=now, token=token, definition=text))
                number = int(made.inserted_primary_key[0])  # type: ignore[index]
                if key is not None:
                    _check_unused(connection, key, name)
                journal = Journal(connection, number, token)
                journal.add(Event(1, now, "created", payload=text).sealed(0))
                journal.flush()
                if key is not None:
                    journal.keep_answer(key, now, digest, {"name": name})
        except sa.exc.IntegrityError:
            if key is not None and self._made_by(name, key, digest):
                return
            raise ExperimentExistsError(
                f"there is an experiment called {shown(name)} already; open it with experiment({shown(name)}), or take "
                f"another name"
            ) from None
        except sa.exc.DBAPIError as error:
            raise _unwritable(error) from error

    def _made_by(self, name: str, key: str, digest: str) -> bool:
        """Whether the request with this key made the experiment."""
        with self.view(name).journal() as journal:
            known = journal.answer(key)
        if known is not None and known.digest != digest:
            raise KeyReusedError(f"the key {_given(key)} was used with another request; take a new key")
        return known is not None

    def names(self) -> list[str]:
        """Names of all experiments.

        Returns
        -------
        list of str
            The oldest first.
        """
        with self._reading.connect() as connection:
            return list(
                connection.execute(sa.select(tables.experiments.c.name).order_by(tables.experiments.c.id)).scalars()
            )

    def elsewhere(self) -> dict[str, str | None]:
        """Experiments in which other servers decide; in SQLite there are none.

        Returns
        -------
        dict
            Their names, with the addresses of these servers.
        """
        return {} if self._leases is None else self._leases.elsewhere()

    def view(self, name: str) -> View:
        """An experiment to be read, beside the process that decides in it.

        Parameters
        ----------
        name : of the experiment

        Returns
        -------
        View

        Raises
        ------
        UnknownExperimentError
            If there is none of that name.
        """
        table = tables.experiments
        with self._reading.connect() as connection:
            row = connection.execute(sa.select(table).where(table.c.name == name)).one_or_none()
        if row is None:
            known = self.names()
            listed = ", ".join(map(shown, known[:10])) or "there are none; make one with create"
            raise UnknownExperimentError(
                f"no experiment is called {shown(name)}; {did_you_mean(name, known)}known: {listed}"
            )
        return View(self._reading, self._text, name, row.id, row.token, Definition.from_json(row.definition))

    def experiment(self, name: str) -> Experiment:
        """Open an experiment for deciding; opening it twice gives the same object.

        Parameters
        ----------
        name : of the experiment

        Returns
        -------
        Experiment

        Raises
        ------
        UnknownExperimentError
            If there is none of that name.
        OtherDeciderError
            If another process decides in it.
        LiveError
            If the database cannot be written to.
        """
        with self._turn_of(name):
            if self._closed:  # by another thread, while this one waited
                raise LiveError("the database was closed; open it again")
            found = self._opened.get(name)
            if found is None or found.closed:
                found = self._opened[name] = self._open(self.view(name))
            return found

    def _turn_of(self, name: str) -> threading.Lock:
        with self._guard:
            return self._turns.setdefault(name, threading.Lock())

    def hold(self) -> None:
        """Take the lock of a SQLite file for deciding; `experiment` does so too. In Postgres this does nothing.

        Raises
        ------
        OtherDeciderError
            If another process decides in this file; it says which.
        LiveError
            For a database that cannot be written to.
        """
        if self._file_lock is None:
            return
        if is_read_only(self.url):
            raise LiveError("the database was opened with mode=ro, so nothing can be decided; view() can read")
        try:
            if self._file_lock.database.stat().st_nlink > 1:
                raise LiveError(
                    f"{self._file_lock.database} has another name (a hard link), under which another process could "
                    f"decide unseen; remove the other name, or copy the file"
                )
            with self._guard:
                self._file_lock.acquire()
        except OSError as error:
            raise LiveError(f"{self._file_lock.path}: {error.strerror}; deciding needs a writable folder") from error

    def let_go(self, name: str) -> None:
        """Close one experiment, so that another server may decide in it.

        Parameters
        ----------
        name : of the experiment; nothing happens if it is not open
        """
        with self._turn_of(name):
            experiment = self._opened.pop(name, None)
            if experiment is not None:
                experiment.close()

    @property
    def engine(self) -> sa.Engine:
        """The engine for reading."""
        return self._reading

    @contextlib.contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction that writes.

        Yields
        ------
        sqlalchemy.Connection
        """
        if not self._is_sqlite:
            with self._writing.begin() as connection:
                yield connection
            return
        with self._turn:
            if self._held is None:
                with self._reading.connect():  # one stays for readers: a new one would make a file that was deleted
                    self._held = self._writing.connect()
            held = self._held
            try:
                with held.begin():
                    yield held
            except BaseException:
                self._let_held_go()
                raise

    def _let_held_go(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def _open(self, view: View) -> Experiment:
        self.hold()
        link = Link(view.name, view.experiment, self.writing, view.journal, self.check_file, self._leases)
        writer = Writer(link, view.token, view.definition, now=self._clock)
        try:
            writer.start()
        except sa.exc.DBAPIError as error:
            raise _unwritable(error) from error
        return Experiment(view.name, writer, view)

    def trim(self, name: str, *, days: float) -> int:
        """Delete events of an experiment that are older than `days`, unless a kept snapshot needs them.

        Deleted decisions can no longer be audited, exported or rewarded, unless they are still open; what was learned
        stays.

        Parameters
        ----------
        name : of the experiment
        days : a positive number

        Returns
        -------
        int
            How many events were deleted.

        Raises
        ------
        UnknownExperimentError
            If there is none of that name.
        InputError
            If `days` is not a positive number.
        """
        view = self.view(name)
        before = self._clock() - round(check_positive("days", days) * 86_400e6)
        with self.writing() as connection:
            return Journal(connection, view.experiment, view.token).trim(before)

    # --- the end ------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close all experiments: waiting requests are served first, then others may decide."""
        with self._guard:
            self._closed = True  # who comes later opens nothing; who opens now is waited for
            names = list(self._turns)
        for name in names:
            self.let_go(name)
        if self._file_lock is not None:
            self._file_lock.release()
        if self._leases is not None:
            self._leases.close()
            self.apart.dispose()
        with self._turn:
            self._let_held_go()
        self._reading.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Database({self.url.render_as_string()!r})"


def _check_sessions(connection: sa.Connection) -> None:
    """Refuse a Postgres that has fewer sessions than one server may need."""
    most, kept = (
        int(connection.execute(sa.text(f"SHOW {name}")).scalar_one())
        for name in ("max_connections", "superuser_reserved_connections")
    )
    if most - kept < SESSIONS + APART:
        raise LiveError(
            f"this Postgres has max_connections = {most}, {kept} of them reserved, and a server needs up to "
            f"{SESSIONS + APART}; set max_connections to {SESSIONS + APART + kept} at least, and to more for several"
        )


def _check_unused(connection: sa.Connection, key: str, name: str) -> None:
    """Refuse a key that created another experiment: creation requests share one set of keys."""
    answers, made = tables.answers, tables.experiments
    created = sa.select(made.c.name).join(
        answers, sa.and_(answers.c.experiment == made.c.id, answers.c.time == made.c.created)
    )
    other = connection.execute(created.where(answers.c.key == key, made.c.name != name).limit(1)).scalar()
    if other is not None:
        raise KeyReusedError(f"the key {_given(key)} was used to make {shown(other)}; take a new key")


def _given(key: str) -> str:
    """A stored key as its owner gave it."""
    return shown(key.rpartition("\n")[2])


def _unwritable(error: sa.exc.DBAPIError) -> LiveError:
    return LiveError(f"the database cannot be written to: {first_line(error)}; nothing was changed")


def open_database(
    url: str,
    *,
    create: bool = True,
    pragmas: Mapping[str, Any] | None = None,
    address: str | None = None,
    clock: Callable[[], int] = clock,
) -> Database:
    """Open a database of experiments by its URL.

    Parameters
    ----------
    url : `sqlite:///shop.db` is a file here, `sqlite:////var/lib/shop.db` one by its whole path, and
        `postgresql://user:password@host/name` a Postgres database
    create : whether the tables are made where there are none
    pragmas : SQLite pragmas that differ from the library's defaults
    address : URL of this server, for other servers that forward requests for its experiments
    clock : a function that returns microseconds since 1970, for simulations that run faster than real time

    Returns
    -------
    Database

    Raises
    ------
    InputError
        For a URL that is neither SQLite nor Postgres.
    SchemaError
        For a database of another version of the library, or without tables where `create` is False.
    LiveError
        If it cannot be opened.

    >>> import tempfile
    >>> import driftbandits as db
    >>> with tempfile.TemporaryDirectory() as folder, db.live.open(f"sqlite:///{folder}/shop.db") as database:
    ...     database.names()
    []
    """
    database = Database(url, pragmas=pragmas, address=address, clock=clock)
    try:
        database.prepare(create=create)
    except sa.exc.DBAPIError as error:
        database.close()
        raise LiveError(
            f"the database {database.url.render_as_string()} cannot be opened: {first_line(error)}"
        ) from error
    except BaseException:
        database.close()
        raise
    return database
