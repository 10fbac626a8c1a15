"""Command line: thin over public functions; `driftbandits --help` says what there is."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from driftbandits.errors import MissingExtraError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. 0: success; 1: an error, said in one line; 2: wrong usage; 130: interrupted."""
    try:
        from driftbandits.cli.app import app
    except ModuleNotFoundError as error:
        if str(error.name).startswith("driftbandits"):
            raise
        cure = MissingExtraError(str(error.name), extra="experiments", purpose="the command line")
        print(f"driftbandits: {cure}", file=sys.stderr)
        return 1
    try:
        app(None if arguments is None else list(arguments), prog_name="driftbandits")
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else int(done.code is not None)
    return 0
