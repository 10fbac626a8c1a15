"""Keys: who may send requests. The database has their hashes alone; a server keeps them in memory for a moment.

A key is `db_<id>_<secret>`. The secret is 32 random bytes, so that one round of SHA-256 is enough: there is nothing to
guess. Scopes: `decide` may decide, tell rewards and forget, and see the summary; `read` may look at everything; `admin`
may do all.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa

from driftbandits.errors import InputError
from driftbandits.live import Database, tables
from driftbandits.live.definition import check_name
from driftbandits.showing import shown

SCOPES = ("decide", "read", "admin")
FRESH_SECONDS = 2.0  # for which what was read of the table counts: a revoked key works for so long
_KEY = re.compile(r"db_([0-9a-f]{8})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key as the database has it; times in microseconds since 1970."""

    id: str
    name: str
    scope: str
    hash: str
    created: int
    revoked: int | None


def create_key(database: Database, name: str, scope: str) -> str:
    """Make a key and keep its hash. What is returned is shown once: it stands nowhere."""
    if scope not in SCOPES:
        raise InputError(f"scope must be one of {', '.join(SCOPES)}, got {shown(scope)}")
    check_name("the name of a key", name)
    ident, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    row = {"id": ident, "name": name, "scope": scope, "hash": _hash(secret), "created": time.time_ns() // 1000}
    with database.writing() as connection:
        connection.execute(sa.insert(tables.keys).values(**row))
    return f"db_{ident}_{secret}"


def list_keys(database: Database) -> list[KeyRow]:
    """All keys, oldest first."""
    with database.engine.connect() as connection:
        rows = connection.execute(sa.select(tables.keys).order_by(tables.keys.c.created)).all()
    return [KeyRow(*row) for row in rows]


def revoke_key(database: Database, ident: str) -> None:
    """Make a key useless, for good."""
    table = tables.keys
    with database.writing() as connection:
        done = connection.execute(
            sa.update(table)
            .where(table.c.id == ident, table.c.revoked.is_(None))
            .values(revoked=time.time_ns() // 1000)
        )
    if done.rowcount == 0:
        known = [row.id for row in list_keys(database) if row.revoked is None]
        raise InputError(f"no key in use has the id {shown(ident)}; ids in use: {', '.join(known) or 'none'}")


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


class Keyring:
    """The keys of a database, read again when what is known is older than two seconds."""

    def __init__(self, database: Database, now: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._now = now
        self._known: dict[str, KeyRow] = {}
        self._read_at = float("-inf")
        self._lock = threading.Lock()

    @property
    def is_stale(self) -> bool:
        """Whether `refresh` is due."""
        return self._now() - self._read_at > FRESH_SECONDS

    def refresh(self) -> None:
        """Read the table, if it is time to; where that fails, what is known counts on."""
        with self._lock:
            if self.is_stale:
                self._known = {row.id: row for row in list_keys(self._database)}
                self._read_at = self._now()

    @property
    def exists(self) -> bool:
        """Whether there is a key; one that was revoked counts, so that a server never opens by itself."""
        return bool(self._known)

    def names(self) -> dict[str, str]:
        """Names of the keys by their ids."""
        return {row.id: row.name for row in self._known.values()}

    def find(self, key: str) -> KeyRow | None:
        """The row of a key that is right and not revoked."""
        match = _KEY.fullmatch(key)
        row = None if match is None else self._known.get(match[1])
        expected = "0" * 64 if row is None else row.hash
        same = hmac.compare_digest(_hash("" if match is None else match[2]), expected)
        return row if row is not None and same and row.revoked is None else None
