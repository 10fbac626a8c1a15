"""The page of a run: one HTML file that needs nothing beside it."""

from __future__ import annotations

import html
import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftbandits._util.files import write_whole
from driftbandits._util.machine import installed_versions
from driftbandits.errors import MissingExtraError
from driftbandits.experiments.results import Results
from driftbandits.experiments.specs import Experiment
from driftbandits.report.blocks import (
    ReportContext,
    ReportTable,
    Section,
    TableColumn,
    TableEntry,
    count,
    duration,
    experiment_blocks,
    listed,
    number,
)
from driftbandits.version import __version__

HERE = Path(__file__).parent
OWN_ANCHOR, OWN_TITLE = "own", "Experiments of your own"
_INDEXED = re.compile(r"\b(L|V|gamma)_T\b")
_POWER = re.compile(r"\^\((\d+/\d+)\)")
_ROOT = re.compile(r"\bsqrt(?=\()")
_NAMES = {"gamma": "γ"}
_WHOLE = re.compile(r"\b[A-Z]\w*(?:-[A-Z]\w*)+|\b[dNT] = [\d,.]*\d")


def html_of(text: str) -> str:
    """The text as HTML: escaped, with symbols, powers and roots of formulas.

    >>> html_of("d sqrt(L_T T) & V_T^(1/3)")
    'd √(L<sub>T</sub> T) &amp; V<sub>T</sub><sup>1/3</sup>'
    """
    escaped = html.escape(text)
    indexed = _INDEXED.sub(lambda found: f"{_NAMES.get(found[1], found[1])}<sub>T</sub>", escaped)
    return _ROOT.sub("√", _POWER.sub(r"<sup>\1</sup>", indexed))


def html_of_prose(text: str) -> str:
    """As `html_of`, and no line ends inside a name with hyphens or an equation.

    >>> html_of_prose("ADA-OPNN, d = 3")
    '<span class="whole">ADA-OPNN</span>, <span class="whole">d = 3</span>'
    """
    return _WHOLE.sub(r'<span class="whole">\g<0></span>', html_of(text))


MOST_EXPERIMENTS_PER_ROW = 3


def settings_table(experiments: Sequence[Experiment]) -> ReportTable:
    """One row per policy and settings, with the experiments it played them in."""
    where: dict[tuple[str, str, str, str], list[str]] = {}
    for experiment in experiments:
        for policy in experiment.policies:
            settings = {**experiment.common, **policy.settings}
            kernel = "the world’s" if policy.kernel is None else in_words(policy.kernel)
            key = (policy.label, policy.name, in_words(settings) or "defaults", kernel)
            where.setdefault(key, []).append(experiment.id)
    rows = [
        (*(TableEntry(part) for part in key), TableEntry(listed(ids, MOST_EXPERIMENTS_PER_ROW)))
        for key, ids in sorted(where.items(), key=lambda item: item[0][0].lower())
    ]
    heads = ("policy", "class", "settings", "kernel it is told", "played in")
    return ReportTable(
        "Settings of every policy", tuple(TableColumn(head, numeric=False) for head in heads), tuple(rows)
    )


def in_words(settings: Mapping[str, Any]) -> str:
    """Settings as text that a person reads.

    >>> in_words({"window": 3000, "constants": {"c0": 1.38, "scale": None}, "train": False})
    'window 3000, constants (c0 1.38, scale none), train no'
    """
    return ", ".join(f"{key} {_value(value)}" for key, value in settings.items())


def _value(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, Mapping):
        return f"({in_words(value)})"
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:.6g}"
    return json.dumps(value)


PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "matplotlib", "torch")
NAMES_OF_FACTS = {
    "mode": "size of the run",
    "date": "date",
    "jobs": "processes",
    "engine": "engine",
    "command": "command",
}


def facts_table(about: Mapping[str, object]) -> ReportTable:
    """What the caller says about the run, then versions and machine as they are now.

    Keys that end in `seconds` are durations; the command is not in the table, for it has a place of its own.
    """
    said = {_name(key): _shown(key, value) for key, value in about.items() if key not in ("command", "version")}
    versions = {"driftbandits": str(about.get("version", __version__)), "Python": platform.python_version()}
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count() or 'unknown'} cores"
    facts = {**said, **versions, **installed_versions(PACKAGES), "machine": machine}
    rows = tuple((TableEntry(name), TableEntry(value)) for name, value in facts.items())
    return ReportTable(
        "How this report came about", (TableColumn("what", numeric=False), TableColumn("value", numeric=False)), rows
    )


def commands(about: Mapping[str, object]) -> list[str]:
    """The commands that make this report again, one per line."""
    given = about.get("command", "")
    return [str(line) for line in given] if isinstance(given, list | tuple) else str(given).splitlines()


def _name(key: str) -> str:
    if key in ("seconds", "wall_seconds", "wall seconds"):
        return "time it took"
    plain = key.replace("_", " ")
    return NAMES_OF_FACTS.get(key, plain.removesuffix(" seconds"))


def _shown(key: str, value: object) -> str:
    if key == "jobs" and isinstance(value, int) and value < 0:  # joblib's way: -1 is all cores, -2 all but one
        return f"{max(1, (os.cpu_count() or 1) + 1 + value):,}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        if key.endswith("seconds"):
            return duration(float(value))
        return f"{value:,}" if isinstance(value, int) else number(value)
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    return str(value)


MOST_UNFINISHED_NAMED = 3  # experiments, on the first screen


def unfinished(context: ReportContext) -> str:
    """How many runs are missing, and where; nothing where none is."""
    lacking = context.missing(context.results.experiments)
    if not lacking:
        return ""
    total = sum(context.wanted.values())
    where = listed([f"{name} ({runs:,})" for name, runs in lacking.items()], MOST_UNFINISHED_NAMED)
    return f"{count(sum(lacking.values()), 'run')} of {total:,} are missing: {where}."


@dataclass(frozen=True)
class Page:
    """All that the template shows."""

    title: str
    style: str
    version: str
    opening: tuple[str, ...]
    unfinished: str
    chapters: tuple[Section, ...]
    settings: ReportTable
    facts: ReportTable
    commands: tuple[str, ...]


def write_report(
    results: Results, *, out: Path, title: str = "Experiments", about: Mapping[str, object] | None = None
) -> Path:
    """Write `report.html` into `out`, and every figure as PNG and PDF into `out/figures`; gives the page's path.

    Parameters
    ----------
    results : whatever was played; unfinished experiments say how many runs they lack
    about : facts of the run, shown as they are: command (a string or a list of lines), mode, wall_seconds, jobs,
        engine, version, date, or any other; names that end in `seconds` are durations

    """
    context = ReportContext(results, Path(out) / "figures")
    blocks = tuple(experiment_blocks(context, results.experiments))
    chapters = (Section(OWN_ANCHOR, OWN_TITLE, "", blocks),) if blocks else ()
    return write_page(Page(**page_parts(context, chapters, title=title, about=about or {})), out)


def page_parts(
    context: ReportContext,
    chapters: Sequence[Section],
    *,
    title: str,
    about: Mapping[str, object],
    what: str = "Experiments played with driftbandits",
) -> dict[str, Any]:
    """The fields of a page; `what` begins its first sentence."""
    begun = context.begun(context.results.experiments)
    return {
        "title": title,
        "style": (HERE / "style.css").read_text(encoding="utf-8"),
        "version": str(about.get("version", __version__)),
        "opening": _opening(context, what),
        "unfinished": unfinished(context),
        "chapters": tuple(chapters),
        "settings": settings_table(begun),
        "facts": facts_table(about),
        "commands": tuple(commands(about)),
    }


def write_page(page: Page, out: Path, *, template: Path = HERE / "run.html") -> Path:
    """Write the page into the folder `out`; every text in it is escaped. A template may extend `run.html`."""
    try:
        import jinja2
        import markupsafe
    except ModuleNotFoundError:
        raise MissingExtraError("jinja2", extra="experiments", purpose="a report") from None
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([template.parent, HERE]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["symbols"] = lambda text: markupsafe.Markup(html_of(str(text)))  # they escape
    environment.filters["prose"] = lambda text: markupsafe.Markup(html_of_prose(str(text)))
    path = Path(out) / "report.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, environment.get_template(template.name).render(page=page).encode())
    return path


def _opening(context: ReportContext, what: str) -> tuple[str, ...]:
    begun = context.begun(context.results.experiments)
    runs = sum(context.played.values())
    work = duration(float(context.results.cells["seconds"].sum()))
    return (
        f"{what}: {count(runs, 'run')} of {count(len(begun), 'experiment')}, {work} of computing.",
        "Regret is the reward lost against always playing the best arm of the round, so less is better. A seed fixes "
        "the world and its noise for all policies alike; numbers are means over seeds, ± one standard error of the "
        "mean.",
    )
