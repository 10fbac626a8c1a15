"""Which schema a database has, and bringing it to the one this version reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa

from driftbandits.errors import SchemaError
from driftbandits.live import migrations
from driftbandits.version import __version__

HEAD = "0001"  # the schema that this version reads and writes
_UPGRADING = 0x6472696674  # "drift": the number of an advisory lock


def present(connection: sa.Connection) -> str | None:
    """The schema that a database has; None for an empty one."""
    inspector = sa.inspect(connection)
    if not inspector.has_table("alembic_version"):
        if inspector.has_table("events"):
            raise SchemaError("this database has a table 'events' that is not driftbandits'; take another database")
        return None
    found: str | None = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    return found


def check(connection: sa.Connection) -> None:
    """Refuse a database whose schema is not the one that this version reads, and say what to do."""
    found = present(connection)
    if found == HEAD:
        return
    if found is None:
        raise SchemaError("this database has no experiments' tables yet; make them with: driftbandits db upgrade URL")
    if found > HEAD:
        raise SchemaError(
            f"this database has schema {found}, and driftbandits {__version__} knows up to {HEAD}: a newer version "
            f"wrote it; install that one. Nothing was changed"
        )
    raise SchemaError(
        f"this database has schema {found}, and driftbandits {__version__} reads {HEAD}; take a backup, then run: "
        f"driftbandits db upgrade URL. Nothing was changed"
    )


def upgrade(connection: sa.Connection) -> list[str]:
    """Bring a database to the schema of this version, in the transaction under way; the steps that were made."""
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    if connection.dialect.name == "postgresql":  # two that start at once take turns; SQLite does so by itself
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:number)"), {"number": _UPGRADING})
    found = present(connection)
    if found is not None and found > HEAD:
        check(connection)
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.set_main_option("path_separator", "os")
    script = ScriptDirectory.from_config(config)
    done: list[str] = []

    def steps(revision: Any, _: Any) -> Any:
        planned = script._upgrade_revs("head", revision)  # what alembic's own upgrade command calls
        done.extend(step.revision.revision for step in planned if step.revision is not None)
        return planned

    with EnvironmentContext(config, script, fn=steps) as environment:
        environment.configure(connection=connection)
        environment.run_migrations()
    return done
