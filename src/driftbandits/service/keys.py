"""Keys, and admission: who may send which requests, decided before anything of a request is read.

A key is `db_<id>_<secret>`. The secret is 32 random bytes, so that one round of SHA-256 is enough: there is nothing to
guess. The database has hashes alone; a server keeps them in memory for a moment. Scopes: `decide` may decide, send and
forget rewards, and read the summary; `read` may read everything; `admin` may do all. `guest` may decide among all arms
and send rewards, and teaches the policy nothing: for programs in the hands of others.

Requests are admitted by `Authorization: Bearer KEY`, or by the page's cookie. That holds a session: a secret of its
own in the same table, which names the key that began it, and ends with that key, after twelve hours, or by logging out.

Without any key: only while none exists, from this machine, with Host localhost or 127.0.0.1, and with no header that a
proxy adds, else a local proxy would let the world in.

A browser sends what any web page tells it to. So whatever changes something must be JSON; an Origin, if one is sent,
must be this server's own; and what comes from a page (by cookie, or with an Origin) must carry the page's token.
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
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa

from driftbandits._util.checks import check_count, check_positive
from driftbandits.errors import InputError
from driftbandits.live import Database, tables
from driftbandits.live.definition import check_name, check_visible
from driftbandits.service.problems import Problem
from driftbandits.text import shown

COOKIE = "driftbandits_session"
SESSION_SECONDS = 12 * 3600
TOKEN_HEADER = "x-csrf-token"
LOCAL_HOSTS = ("localhost", "127.0.0.1")
PROXIED = ("forwarded", "x-real-ip", "via")  # and everything that begins with x-forwarded
_ALLOWED = {
    "guest": {"decide"},
    "decide": {"decide", "summary"},
    "read": {"read", "summary"},
    "admin": {"decide", "read", "summary", "admin"},
}
SCOPES = ("guest", "decide", "read", "admin")
GUEST_PER_MINUTE = 600  # decisions, unless said otherwise
ROTATION_HOURS = 24.0  # for which the old key works beside the new one
LONGEST_LIFE = 100 * 365 * 24 * 3600  # seconds of a key that ends
FRESH_SECONDS = 2.0  # for which what was read of the table counts: a revoked key works for so long
STALE_SECONDS = 10.0  # the same where the table cannot be read; after that nobody is admitted
_KEY = re.compile(r"db_([0-9a-f]{8})_([A-Za-z0-9_-]{43})")
_SESSION = re.compile(r"dbs_(s[0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_IS_SESSION = tables.keys.c.id.like("s%")  # ids of keys are hexadecimal digits


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key as the database has it; times in microseconds since 1970."""

    id: str
    name: str
    scope: str
    hash: str
    created: int
    revoked: int | None
    per_minute: int | None = None  # decisions, at most
    expires: int | None = None

    @property
    def is_valid(self) -> bool:
        """Whether it was not revoked and has not run out."""
        return self.revoked is None and (self.expires is None or time.time_ns() // 1000 < self.expires)


def create_key(
    database: Database, name: str, scope: str, *, per_minute: int | None = None, days: float | None = None
) -> str:
    """Make a key and store its hash. The key itself is stored nowhere, so it can be shown only once.

    `per_minute` limits its decisions; without it those of a guest are limited to 600, and those of others are not. It
    ends after so many `days`, or when it is revoked.
    """
    if scope not in SCOPES:
        raise InputError(f"scope must be one of {', '.join(SCOPES)}, got {shown(scope)}")
    check_name("the name of a key", name)
    check_visible("the name of a key", [name])
    most = check_count("per_minute", per_minute) if per_minute is not None else None
    if most is None and scope == "guest":
        most = GUEST_PER_MINUTE
    now = time.time_ns() // 1000
    expires = None if days is None else now + _microseconds("days", days, 24 * 3600)
    key, row = _new_key(name, scope, now, most, expires)
    with database.writing() as connection:
        connection.execute(sa.insert(tables.keys).values(**row))
    return key


def _microseconds(what: str, given: float, seconds: int) -> int:
    value = check_positive(what, given, cure="leave it out for a key that does not end")
    if value * seconds > LONGEST_LIFE:
        raise InputError(f"{what} must be at most {LONGEST_LIFE / seconds:,.0f}, got {given:g}")
    return round(value * seconds * 1_000_000)


def _new_key(name: str, scope: str, now: int, most: int | None, expires: int | None) -> tuple[str, dict[str, Any]]:
    ident, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    row = {"id": ident, "name": name, "scope": scope, "hash": _hash(secret), "created": now}
    return f"db_{ident}_{secret}", {**row, "per_minute": most, "expires": expires}


def rotate_key(database: Database, ident: str, *, hours: float = ROTATION_HOURS) -> str:
    """A new key like this one, which itself ends after so many hours: programs take the new one meanwhile.

    A key that was made to last for some days gives one that lasts as long, from now.
    """
    table, now = tables.keys, time.time_ns() // 1000
    grace = _microseconds("hours", hours, 3600)
    with database.writing() as connection:
        row = connection.execute(sa.select(table).where(table.c.id == ident, ~_IS_SESSION)).one_or_none()
        old = None if row is None else KeyRow(*row)
        if old is not None and old.is_valid:
            lasts = None if old.expires is None else now + old.expires - old.created
            key, new = _new_key(old.name, old.scope, now, old.per_minute, lasts)
            connection.execute(sa.insert(table).values(**new))
            end = now + grace if old.expires is None else min(old.expires, now + grace)
            connection.execute(sa.update(table).where(table.c.id == ident).values(expires=end))
            return key
    raise _unknown(database, ident)


def _unknown(database: Database, ident: str) -> InputError:
    known = [row.id for row in list_keys(database) if row.is_valid]
    return InputError(f"no key in use has the id {shown(ident)}; ids in use: {', '.join(known) or 'none'}")


def list_keys(database: Database) -> list[KeyRow]:
    """All keys, oldest first."""
    return [row for row in _rows(database) if not row.id.startswith("s")]


def _rows(database: Database) -> list[KeyRow]:
    """Keys and sessions; the name of a session is the id of the key that began it."""
    with database.apart.connect() as connection:
        rows = connection.execute(sa.select(tables.keys).order_by(tables.keys.c.created)).all()
    return [KeyRow(*row) for row in rows]


def begin_session(database: Database, key: KeyRow) -> str:
    """A session of this key, for a cookie; sessions that have run out are deleted."""
    ident, secret, now = f"s{secrets.token_hex(8)}", secrets.token_urlsafe(32), time.time_ns() // 1000
    row = {"id": ident, "name": key.id, "scope": key.scope, "hash": _hash(secret), "created": now}
    with database.writing() as connection:
        old = tables.keys.c.created < now - SESSION_SECONDS * 1_000_000
        connection.execute(sa.delete(tables.keys).where(_IS_SESSION, old))
        connection.execute(sa.insert(tables.keys).values(**row))
    return f"dbs_{ident}_{secret}"


def end_session(database: Database, session: str) -> None:
    """End a session, if it is one that there is; whoever knows its id and not its secret ends nothing."""
    match = _SESSION.fullmatch(session)
    if match is not None:
        own = (tables.keys.c.id == match[1]) & (tables.keys.c.hash == _hash(match[2]))
        with database.writing() as connection:
            connection.execute(sa.delete(tables.keys).where(_IS_SESSION, own))


def revoke_key(database: Database, ident: str) -> None:
    """Revoke a key permanently."""
    table = tables.keys
    with database.writing() as connection:
        done = connection.execute(
            sa.update(table)
            .where(table.c.id == ident, table.c.revoked.is_(None))
            .values(revoked=time.time_ns() // 1000)
        )
    if done.rowcount == 0:
        raise _unknown(database, ident)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


class Keyring:
    """The keys of a database, read again when what is known is older than two seconds.

    While that fails, the known ones stay valid for ten seconds.
    """

    def __init__(self, database: Database, now: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._now = now
        self._known: dict[str, KeyRow] = {}
        self._sessions: dict[str, KeyRow] = {}
        self._read_at = float("-inf")
        self._lock = threading.Lock()

    @property
    def is_stale(self) -> bool:
        """Whether `refresh` is due."""
        return self._now() - self._read_at > FRESH_SECONDS

    def refresh(self) -> None:
        """Refresh from the table when due."""
        with self._lock:
            if self.is_stale:
                self._read()

    def reread(self) -> None:
        """Read the table now: a session began or ended here."""
        with self._lock:
            self._read()

    def _read(self) -> None:
        rows = _rows(self._database)
        self._sessions = {row.id: row for row in rows if row.id.startswith("s")}
        self._known = {row.id: row for row in rows if row.id not in self._sessions}
        self._read_at = self._now()

    @property
    def is_unknown(self) -> bool:
        """Whether what is known is too old to admit anybody: a key may have been revoked since."""
        return self._now() - self._read_at > STALE_SECONDS

    @property
    def exists(self) -> bool:
        """Whether any key exists, revoked ones included, so that a server never becomes open by itself."""
        return bool(self._known)

    def ending(self, days: float) -> list[tuple[str, float]]:
        """Names of keys in use that end within so many days, and in how many."""
        now = time.time_ns() // 1000
        left = [
            (row.name, (row.expires - now) / 86_400e6) for row in self._known.values() if row.is_valid and row.expires
        ]
        return [(name, share) for name, share in left if share < days]

    def names(self) -> dict[str, str]:
        """Names of the keys by their ids."""
        return {row.id: row.name for row in self._known.values()}

    def find(self, key: str) -> KeyRow | None:
        """The row of a key that is right and not revoked."""
        return self._right(_KEY.fullmatch(key), self._known)

    def find_session(self, session: str) -> KeyRow | None:
        """The row of the key that began a session, if neither has ended."""
        row = self._right(_SESSION.fullmatch(session), self._sessions)
        if row is None or time.time_ns() // 1000 - row.created > SESSION_SECONDS * 1_000_000:
            return None
        key = self._known.get(row.name)
        return key if key is not None and key.is_valid else None

    def _right(self, match: re.Match[str] | None, rows: dict[str, KeyRow]) -> KeyRow | None:
        row = None if match is None else rows.get(match[1])
        expected = "0" * 64 if row is None else row.hash
        same = hmac.compare_digest(_hash("" if match is None else match[2]), expected)
        return row if row is not None and same and row.is_valid else None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request: the id of a key ("" where none is needed), what it may do, and the key or session itself."""

    key_id: str
    scope: str
    key: str
    by_cookie: bool = False
    per_minute: int | None = None

    def may(self, action: str) -> bool:
        """Whether it may decide, read, see the summary, or administer."""
        return action in _ALLOWED[self.scope]


class Gate:
    """The rules, for one server."""

    def __init__(self, keyring: Keyring, *, local: bool, public_url: str | None = None) -> None:
        self._keyring = keyring
        self._local = local
        self._public = None if public_url is None else urlsplit(public_url).netloc
        self.secure = bool(public_url and public_url.startswith("https:"))
        self._secret = secrets.token_bytes(32)  # of tokens where there is no key
        self._left: dict[str, tuple[float, float]] = {}  # decisions that limited keys may make, and when that was

    def admit(self, headers: dict[str, str], client: str | None) -> Caller:
        """The caller, or a 401; or a 503, where nobody knows which keys there are."""
        if self._keyring.is_unknown:
            raise Problem(503, "keys", "the keys cannot be read; try again in a while", retry_after="1")
        sent = headers.get("authorization", "")
        if sent:
            word, _, key = sent.partition(" ")
            return self._known(key.strip() if word.lower() == "bearer" else "", by_cookie=False)
        session = cookie_of(headers)
        if session and self._keyring.exists:
            return self._known(session if session.startswith("dbs_") else "", by_cookie=True)
        if self._keyring.exists:
            raise _refused("send a key: Authorization: Bearer KEY. driftbandits keys create makes one")
        self._check_open(headers, client)
        return Caller("", "admin", "")

    def _known(self, key: str, *, by_cookie: bool) -> Caller:
        row = self._keyring.find_session(key) if key.startswith("dbs_") else self._keyring.find(key)
        if row is None:
            raise _refused("this key is not known, or was revoked; driftbandits keys list shows which there are")
        return Caller(row.id, row.scope, key, by_cookie, row.per_minute)

    def count(self, caller: Caller, decisions: int) -> None:
        """Refuse decisions beyond what this key may make per minute, by a 429; a minute's worth may come at once."""
        most = caller.per_minute
        if most is None:
            return
        now = time.monotonic()
        left, at = self._left.get(caller.key_id, (float(most), now))
        left = min(left + (now - at) * most / 60.0, float(most))
        if decisions > left:
            seconds = min((decisions - left) * 60.0 / most, 60.0)
            raise Problem(
                429,
                "too-many",
                f"this key may make {most:,} decisions per minute; try again in {seconds:.0f} s",
                retry_after=f"{max(seconds, 1.0):.0f}",
            )
        self._left[caller.key_id] = left - decisions, now

    def _check_open(self, headers: dict[str, str], client: str | None) -> None:
        """Without any key: only from this machine, by its own name, and through no proxy."""
        cure = "make a key with driftbandits keys create, and send it as Authorization: Bearer KEY"
        if not self._local or client not in ("127.0.0.1", "::1"):
            raise _refused(f"without a key only this machine is served; {cure}")
        host = headers.get("host", "")
        if host.rpartition(":")[0] not in LOCAL_HOSTS and host not in LOCAL_HOSTS:
            raise _refused(f"without a key only Host localhost or 127.0.0.1 is served; {cure}")
        for name in headers:
            if name in PROXIED or name.startswith("x-forwarded"):
                raise _refused(f"a proxy is in between (header {name}), and there is no key yet; {cure}")

    def check_change(self, headers: dict[str, str], caller: Caller) -> None:
        """A request that changes something must be JSON, and not from another site."""
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Problem(415, "not-json", "send Content-Type: application/json, also where the body is empty")
        self.check_origin(headers)
        if (caller.by_cookie or "origin" in headers) and not self.is_token(headers.get(TOKEN_HEADER, ""), caller):
            raise Problem(403, "token", f"a page must send its token in {TOKEN_HEADER}; load the page again")

    def check_origin(self, headers: dict[str, str]) -> None:
        """An Origin, if one is sent, must be this server's own."""
        origin = headers.get("origin")
        if origin is None:
            return
        sent = urlsplit(origin).netloc
        if not sent or sent not in (headers.get("host"), self._public):
            raise Problem(403, "origin", "pages of other servers may not send requests to this one")

    def token(self, caller: Caller) -> str:
        """The token of a page that this caller loaded: only someone who can read the page knows it."""
        secret = caller.key.encode() or self._secret
        return hmac.new(secret, b"driftbandits page", hashlib.sha256).hexdigest()

    def is_token(self, given: str, caller: Caller) -> bool:
        """Whether a token is that of this caller's page."""
        return hmac.compare_digest(given.encode(), self.token(caller).encode())


def cookie_of(headers: dict[str, str]) -> str:
    """The session in the page's cookie, or nothing; others may hold whatever they like, such as JSON."""
    for pair in headers.get("cookie", "").split(";"):
        name, _, value = pair.strip().partition("=")
        if name == COOKIE:
            return value.strip()
    return ""


def _refused(detail: str) -> Problem:
    return Problem(401, "key", detail, www_authenticate='Bearer realm="driftbandits"')
