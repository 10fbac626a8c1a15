"""Settings of a server: by flag, by environment variable (DRIFTBANDITS_NAME) or in a TOML file, in this order.

`docs/service.md` has the table; a test compares it with the fields here.
"""

from __future__ import annotations

import ipaddress
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from driftbandits.errors import InputError, did_you_mean, near_and_valid

PREFIX = "DRIFTBANDITS_"
LEVELS = ("debug", "info", "warning", "error")


class Settings(BaseModel):
    """All settings with their defaults."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    database: str = Field("sqlite:///driftbandits.db", description="URL of the database: SQLite or Postgres")
    host: str = Field("127.0.0.1", description="address to listen at; one that others can reach needs a key")
    port: int = Field(8350, ge=0, le=65535, description="port to listen at; 0 takes a free one")
    advertise: str | None = Field(None, description="URL at which other servers on the same Postgres reach this one")
    forward_plain: bool = Field(
        False, description="whether keys are forwarded over plain HTTP to servers on other machines"
    )
    public_url: str | None = Field(
        None, description="URL that browsers use, behind a proxy; https makes cookies secure"
    )
    log_level: str = Field("info", description=f"how much is logged: {', '.join(LEVELS)}")
    most_body: int = Field(1_000_000, ge=1_000, description="bytes of a request's body")
    most_arms: int = Field(1_000, ge=2, le=10_000, description="arms of an experiment, and its segments")
    most_open: int = Field(1_000_000, ge=1, description="decisions of an experiment that wait for a reward")
    most_experiments: int = Field(1_000, ge=1, description="experiments of the database")
    most_connections: int = Field(2_000, ge=1, description="connections at a time")
    most_per_address: int = Field(1_500, ge=1, description="connections of one address")

    @field_validator("log_level")
    @classmethod
    def _known_level(cls, level: str) -> str:
        if level not in LEVELS:
            raise ValueError(f"must be one of {', '.join(LEVELS)}, got {level!r}")
        return level

    @field_validator("advertise", "public_url")
    @classmethod
    def _is_url(cls, url: str | None) -> str | None:
        if url is not None and not url.startswith(("http://", "https://")):
            raise ValueError(f"must be a URL such as http://10.0.0.5:8350, got {url!r}")
        return None if url is None else url.rstrip("/")

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine and nothing else.

    >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("10.0.0.5")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_settings(flags: Mapping[str, Any], file: Path | None = None) -> Settings:
    """Settings from flags (None: not given), the environment and a file.

    >>> read_settings({"port": 9000, "host": None}).port
    9000
    """
    given = {name: value for name, value in flags.items() if value is not None}
    try:
        return Settings(**{**({} if file is None else _read_file(file)), **_read_environment(), **given})
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise InputError(f"setting {name}: {first['msg'].removeprefix('Value error, ')}") from None


def _read_environment() -> dict[str, str]:
    """What variables set. A misspelt one is refused; one unlike any of ours may belong to another program."""
    known = {f"{PREFIX}{name.upper()}": name for name in Settings.model_fields}
    for name in os.environ:
        near = did_you_mean(name.upper(), known, cutoff=0.9) if name.upper().startswith(PREFIX) else ""
        if near and name.upper() not in known:
            raise InputError(f"the environment has {name}, which sets nothing; {near.strip()}")
    return {known[name.upper()]: value for name, value in os.environ.items() if name.upper() in known}


def _read_file(file: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:  # not TOML, or not UTF-8
        raise InputError(f"{file} is not TOML: {error}") from error
    for name in found:
        if name not in Settings.model_fields:
            raise InputError(f"{file} sets {name!r}; {near_and_valid(name, Settings.model_fields)}")
    return found
