"""`driftbandits evaluate` and `driftbandits advise`: what a log of decisions says."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftbandits.cli.options import Json, print_json, say

if TYPE_CHECKING:
    from driftbandits.logs import Advice, Log
    from driftbandits.logs.recommendation import Recommendation
    from driftbandits.policies import Policy


def _read(
    log: Annotated[
        Path, typer.Argument(metavar="LOG", help="The log: Parquet, CSV or NDJSON, or a query; see docs/logs.md.")
    ],
    reward_range: Annotated[
        tuple[float, float] | None,
        typer.Option(
            "--range", metavar="LOW HIGH", help="Ends that no reward may exceed; anytime intervals need them."
        ),
    ] = None,
    arms: Annotated[
        list[str],
        typer.Option(
            "--arm", metavar="NAME", help="An arm that could be played, if not all occur; once for every arm."
        ),
    ] = [],  # noqa: B006  (Typer makes a new list)
    columns: Annotated[
        list[str],
        typer.Option("--column", metavar="NAME=COLUMN", help="What a column is called, as arm=variant; once for each."),
    ] = [],  # noqa: B006
    layout: Annotated[
        str | None, typer.Option("--layout", help="open-bandit or vw, where the log is laid out like that.")
    ] = None,
    sort: Annotated[bool, typer.Option("--sort", help="Put rows into the order of their rounds or times.")] = False,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave out rows that lack an arm, a time, ...; counted.")
    ] = False,
    merge_names: Annotated[
        bool, typer.Option("--merge-names", help="Names that differ by case, blanks or accents are one name.")
    ] = False,
    rewards: Annotated[
        Path | None, typer.Option("--rewards", help="A table of rewards by id, where they came later.")
    ] = None,
    zone: Annotated[
        str | None, typer.Option("--zone", help="Time zone of dates that say none, as Europe/Berlin.")
    ] = None,
    database: Annotated[
        str | None, typer.Option("--database", help="URL of SQLAlchemy's; LOG is a query then.")
    ] = None,
    contexts: Annotated[
        Path | None, typer.Option("--contexts", help="What columns context.* are: YAML, JSON or TOML; else inferred.")
    ] = None,
) -> Any:
    """The log, as these options say."""
    from driftbandits.logs import Log

    asked: dict[str, Any] = {"sort": sort, "drop_missing": drop_missing, "merge_names": merge_names, "zone": zone}
    asked |= {"columns": _renamed(columns), "layout": layout, "rewards": rewards, "database": database}
    asked |= {"contexts": None if contexts is None else _declared(contexts)}
    return Log.read(log, arms or None, reward_range=reward_range, **asked)


def _declared(path: Path) -> dict[str, Any]:
    """Columns of contexts by name, as `Contexts.from_dict` takes them."""
    from driftbandits.configuration.files import read_config_file

    return read_config_file(path, needs=("a column",), example="device: [mobile, desktop, other]").values


def _of_a_log(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose first argument reads the log, with the options that say which log, and how to read it."""
    log, *rest = inspect.signature(_read, eval_str=True).parameters.values()
    _, *own, json = inspect.signature(command, eval_str=True).parameters.values()

    def called(**given: Any) -> None:
        mine = {p.name: given.pop(p.name) for p in (*own, json)}
        command(lambda: _read(**given), **mine)

    parameters = [p.replace(kind=p.KEYWORD_ONLY) for p in (log, *own, *rest, json)]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {p.name: p.annotation for p in parameters}
    called.__name__, called.__doc__ = command.__name__, command.__doc__
    return called


@_of_a_log
def evaluate(
    read: Callable[[], Any],
    target: Annotated[
        str, typer.Option("--target", help="An arm, best, uniform, log, a law as in '0.5,0.3,0.2', or a policy.")
    ] = "best",
    against: Annotated[str | None, typer.Option("--against", help="A second target: values the difference.")] = None,
    estimator: Annotated[str, typer.Option("--estimator", help="dr, ips, snips, clipped or direct.")] = "dr",
    by: Annotated[
        str | None, typer.Option("--by", help="A number of windows, their ends as in '1000,2000', changes, or segment.")
    ] = None,
    level: Annotated[float, typer.Option("--level", help="Of the intervals.")] = 0.95,
    json: Json = False,
) -> None:
    """Say what another policy would have earned on the rounds of a log.

    driftbandits evaluate log.parquet --target "14 EUR" --by changes
    """
    from driftbandits.logs import evaluate as value

    log = read()
    found = value(
        log,
        _target(log, target),
        against=None if against is None else _target(log, against),
        estimator=estimator,  # type: ignore[arg-type]  # checked there
        by=_pieces(by),
        level=level,
    )
    if not json:
        typer.echo(repr(found))
        return
    parts = [{name: _number(entry) for name, entry in vars(part).items()} for part in (found.whole, *found.parts)]
    said = {"notes": list(found.notes), "no_anytime": found.no_anytime or None}
    print_json({"target": found.target, "estimator": found.estimator, "parts": parts, **said})


@_of_a_log
def advise(
    read: Callable[[], Any],
    out: Annotated[
        Path, typer.Option("--out", help="The page; what run and the service read stands beside it.")
    ] = Path("advice.html"),
    false_alarm: Annotated[
        float, typer.Option("--false-alarm", help="Probability of a change reported although nothing moves.")
    ] = 0.05,
    twins: Annotated[int, typer.Option("--twins", min=2, help="Worlds in which policies play.")] = 6,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of everything random.")] = 0,
    json: Json = False,
) -> None:
    """Say whether the world of a log moves, how much, whether adapting pays, and what to do; write a page of it.

    driftbandits advise log.parquet --out advice.html
    """
    from driftbandits.logs import advise as ask
    from driftbandits.logs.page import check_page

    check_page(out)
    first = None if json else (lambda found: say(_first_words(found)))
    advice = ask(read(), false_alarm=false_alarm, twins=twins, seed=seed, show=True, first=first)
    files = advice.save(out)
    if not json:
        typer.echo(repr(advice))
        say(f"Written: {', '.join(files)}")
        return
    chosen = advice.recommendation
    print_json(
        {
            "moves": advice.moves,
            "verdict": advice.verdict,
            "changes": [vars(change) for change in advice.changes],
            "recommendation": None if chosen is None else _recommended(chosen),
            "notes": list(advice.notes),
            "files": list(files),
        }
    )


def _recommended(chosen: Recommendation) -> dict[str, Any]:
    names = ("policy", "settings", "fixed_arm", "open")
    return {name: getattr(chosen, name) for name in names}


def _first_words(found: Advice) -> str:
    """What is known before any twin is played."""
    return "\n".join([found.verdict, *(change.words for change in found.changes), "Whether adapting pays:"])


def _renamed(given: list[str]) -> dict[str, str]:
    """Columns from texts such as arm=variant."""
    pairs = [text.partition("=") for text in given]
    for name, sign, own in pairs:
        if not (name and sign and own):
            raise typer.BadParameter(f"{name}{sign}{own}: write NAME=COLUMN, as arm=variant", param_hint="--column")
    return {name: own for name, _, own in pairs}


def _target(log: Log, text: str) -> Any:
    """An arm goes before everything else of that name; numbers with commas are a law, names of policies new ones."""
    from driftbandits.policies import POLICIES

    if text in POLICIES and text not in log.names:
        return _new_policy(log, POLICIES[text])
    if text in log.names or "," not in text:
        return text
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return text


def _new_policy(log: Log, kind: type[Policy]) -> Policy:
    """A policy with its defaults, with contexts where it takes them."""
    import numpy as np

    from driftbandits.logs.log import arms_of
    from driftbandits.policies.inputs import known_settings

    takes = log.contexts is not None and "contexts" in known_settings(kind)
    settings: dict[str, Any] = {"contexts": log.contexts} if takes else {}
    limits = log.reward_range or (float(np.nanmin(log.reward)), float(np.nanmax(log.reward)))
    return kind(arms_of(log), seed=0, reward_range=limits, **settings)


def _pieces(by: str | None) -> Any:
    if by is None:
        return None
    try:
        return [float(part) for part in by.split(",")] if "," in by else int(by)
    except ValueError:
        return by


def _number(value: Any) -> Any:
    """JSON knows no NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
