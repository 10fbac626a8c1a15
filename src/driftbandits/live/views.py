"""Looking at an experiment beside whoever decides in it: nothing is locked, nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from driftbandits.live.checking import Check, replay_and_compare
from driftbandits.live.definition import Definition
from driftbandits.live.journal import Journal
from driftbandits.live.looking import ExperimentSummary, summarise
from driftbandits.live.player import Player
from driftbandits.live.recovery import recover, replayed_from


class View:
    """An experiment to be read; `Database.view` gives it.

    Parameters
    ----------
    engine : by which the database is read
    url : of the database
    name : of the experiment
    experiment : its number
    token : its first part of ids
    definition : what it was made with

    >>> import tempfile
    >>> import driftbandits as db
    >>> with tempfile.TemporaryDirectory() as folder, db.live.open(f"sqlite:///{folder}/shop.db") as database:
    ...     shop = database.create("prices", arms=["9 EUR", "12 EUR"], seed=0)
    ...     choices = shop.decide(3)
    ...     view = database.view("prices")
    ...     view.summary().decisions, view.check().fine
    (3, True)
    """

    def __init__(
        self, engine: sa.Engine, url: str, name: str, experiment: int, token: str, definition: Definition
    ) -> None:
        self.engine, self.url, self.name = engine, url, name
        self.experiment, self.token, self.definition = experiment, token, definition

    @contextmanager
    def journal(self) -> Iterator[Journal]:
        """The journal, as it stands now and stays while it is read.

        Yields
        ------
        Journal
        """
        with self.engine.connect() as connection:
            if connection.dialect.name == "postgresql":  # SQLite reads so by itself
                connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield Journal(connection, self.experiment, self.token)

    def events(self, after: int = 0, limit: int = 1000) -> list[dict[str, Any]]:
        """Rows of the journal, as plain values.

        Parameters
        ----------
        after : number of the event behind which they begin
        limit : how many at most

        Returns
        -------
        list of dict
        """
        with self.journal() as journal:
            return [event._asdict() for event in journal.events(after, after + limit)]

    def summary(self) -> ExperimentSummary:
        """The experiment at a glance.

        Returns
        -------
        ExperimentSummary
        """
        with self.journal() as journal:
            found = recover(journal, self.definition)
        return summarise(self.name, found.player, brought_back=found.way, health=found.problems)

    def player(self, upto: int | None = None) -> Player:
        """What follows from the journal, by a replay of all of it.

        Parameters
        ----------
        upto : number of the last event; None for all

        Returns
        -------
        Player

        Raises
        ------
        JournalError
            If the journal is damaged.
        GoneError
            If retention has deleted its beginning.
        """
        with self.journal() as journal:
            return replayed_from(journal, self.definition, 0, upto)[0]

    def check(self) -> Check:
        """Replay the whole journal and compare every snapshot with what follows; nothing is changed.

        Returns
        -------
        Check
        """
        with self.journal() as journal:
            return replay_and_compare(journal, self.definition)
