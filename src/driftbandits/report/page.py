"""The report as one HTML page that needs nothing beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from driftbandits.errors import MissingExtraError
from driftbandits.experiments.groups.judgements import Judgements, judge
from driftbandits.experiments.judging.results import Results
from driftbandits.files import write_whole
from driftbandits.report.answer import Answer, make_answer
from driftbandits.report.banner import banner, unfinished
from driftbandits.report.chapters import make_chapters
from driftbandits.report.claims import ClaimRow, claim_rows
from driftbandits.report.context import ReportContext
from driftbandits.report.facts import commands, facts_table
from driftbandits.report.formats import count, duration
from driftbandits.report.sections import Section
from driftbandits.report.settings import settings_table
from driftbandits.report.symbols import html_of, html_of_prose
from driftbandits.report.tables import ReportTable
from driftbandits.version import __version__

TITLE = "Non-stationary kernel bandits: the experiments again"


@dataclass(frozen=True)
class Page:
    """All that the template shows."""

    title: str
    style: str
    version: str
    opening: tuple[str, ...]
    banner: str
    unfinished: str
    answer: Answer | None
    claims: tuple[ClaimRow, ...]
    chapters: tuple[Section, ...]
    settings: ReportTable
    facts: ReportTable
    commands: tuple[str, ...]


def write_report(
    results: Results,
    judgements: Judgements | None = None,
    *,
    out: Path,
    title: str = TITLE,
    about: Mapping[str, object] | None = None,
) -> Path:
    """Write `report.html` into `out`, and every figure as PNG and PDF into `out/figures`; gives the page's path.

    Parameters
    ----------
    results : whatever was played; unfinished experiments say how many runs they lack
    judgements : what `experiments.judge` gives, if that was asked before
    about : facts of the run, shown as they are: command (a string or a list of lines), mode, wall_seconds, jobs,
        engine, version, date, or any other; names that end in `seconds` are durations

    """
    judged = judge(results) if judgements is None else judgements
    page = _make_page(ReportContext(results, Path(out) / "figures", judged), title=title, about=about or {})
    path = Path(out) / "report.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, render(page).encode())
    return path


def _make_page(context: ReportContext, *, title: str, about: Mapping[str, object]) -> Page:
    claims = context.judgements.claims
    begun = context.begun(context.results.experiments)
    return Page(
        title=title,
        style=_read("style.css"),
        version=str(about.get("version", __version__)),
        opening=_opening(context, paper=bool(claims)),
        banner=banner(context),
        unfinished=unfinished(context),
        answer=make_answer(context),
        claims=tuple(claim_rows(claims)),
        chapters=tuple(make_chapters(context)),
        settings=settings_table(begun),
        facts=facts_table(about),
        commands=tuple(commands(about)),
    )


def render(page: Page) -> str:
    """The page as HTML; every text in it is escaped."""
    try:
        import jinja2
        import markupsafe
    except ModuleNotFoundError:
        raise MissingExtraError("jinja2", extra="experiments", purpose="a report") from None
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["symbols"] = lambda text: markupsafe.Markup(html_of(str(text)))  # they escape
    environment.filters["prose"] = lambda text: markupsafe.Markup(html_of_prose(str(text)))
    return environment.from_string(_read("template.html")).render(page=page)


def _read(name: str) -> str:
    return (resources.files("driftbandits.report") / name).read_text(encoding="utf-8")


def _opening(context: ReportContext, *, paper: bool) -> tuple[str, ...]:
    begun = context.begun(context.results.experiments)
    runs = sum(context.played.values())
    what = (
        "The experiments of Hong, Li and Tewari, “An Optimization-based Algorithm for Non-stationary Kernel Bandits "
        "without Prior Knowledge” (AISTATS 2023), played again with driftbandits"
        if paper
        else "Experiments played with driftbandits"
    )
    work = duration(float(context.results.cells["seconds"].sum()))
    return (
        f"{what}: {count(runs, 'run')} of {count(len(begun), 'experiment')}, {work} of computing.",
        "Regret is the reward lost against always playing the best arm of the round, so less is better. A seed fixes "
        "the world and its noise for all policies alike; numbers are means over seeds, ± one standard error of the "
        "mean.",
    )
