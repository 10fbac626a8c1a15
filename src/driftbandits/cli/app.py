"""The application: its commands, and one line for every error."""

from __future__ import annotations

import errno
import traceback
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from driftbandits import __version__
from driftbandits.cli import listing, live, logs, run, tune
from driftbandits.cli.options import say
from driftbandits.errors import DriftbanditsError, MissingExtraError

# Which extra brings what a command may miss.
EXTRAS = {
    **dict.fromkeys(("pandas", "pyarrow", "matplotlib", "rich", "pydantic", "yaml", "jinja2"), "experiments"),
    "optuna": "tuning",
    "sqlalchemy": "live",
    "psycopg": "postgres",
    **dict.fromkeys(
        ("fastapi", "starlette", "uvicorn", "httptools", "prometheus_client", "plotly", "httpx"),
        "serve",
    ),
    "ray": "ray",
    **dict.fromkeys(("dask", "distributed"), "dask"),
}


class Commands(TyperGroup):
    """A group whose commands end in one line and an exit code, whatever goes wrong in them."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Run a command."""
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, Exception) as error:
            if hasattr(error, "exit_code") or isinstance(error, typer.Abort) or _is_closed_pipe(error):
                raise  # wrong usage, or an exit: Typer's own business
            if ctx.params.get("traceback"):
                say(getattr(error, "details", "") or "".join(traceback.format_exception(error)))
            say(f"driftbandits: {_line(error)}")
            raise typer.Exit(_exit_code(error)) from None


def _exit_code(error: BaseException) -> int:
    if isinstance(error, KeyboardInterrupt):
        return 130
    from driftbandits.experiments.study import StudyNotFoundError

    return 2 if isinstance(error, StudyNotFoundError) else 1


def _line(error: BaseException) -> str:
    if isinstance(error, DriftbanditsError):
        return str(error)
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, ModuleNotFoundError):
        package = str(error.name).partition(".")[0]
        if package in EXTRAS:
            return str(MissingExtraError(package, extra=EXTRAS[package], purpose="this command"))
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'a file'}: {error.strerror}"
    return f"{type(error).__name__}: {error} (driftbandits --traceback ... shows where)"


def _is_closed_pipe(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EPIPE


app = typer.Typer(
    name="driftbandits",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"driftbandits {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    traceback: Annotated[bool, typer.Option("--traceback", help="Show where an error came from.")] = False,
) -> None:
    """Kernel bandits that notice when the world changes."""
    del version, traceback


app.command("reproduce")(run.reproduce)
app.command("run")(run.run)
app.command("report")(run.report)
app.command("tune")(tune.tune)
app.command("evaluate")(logs.evaluate)
app.command("advise")(logs.advise)
app.command("list")(listing.list_names)
app.command("doctor")(listing.doctor)
app.add_typer(live.experiments, name="experiments")
app.add_typer(live.db, name="db")
app.command("serve")(live.serve)
app.add_typer(live.keys, name="keys")
