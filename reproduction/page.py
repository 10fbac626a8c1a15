"""The report of the study: the page of a run, with the paper's claims and an answer made from their verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftbandits.experiments.results import Results
from driftbandits.experiments.specs import Experiment
from driftbandits.report.blocks import NOTHING, Section, count, interval, listed
from driftbandits.report.page import Page, page_parts, write_page
from reproduction.claims import LEAST_SEEDS, Check, Claim
from reproduction.groups import EXPERIMENTS, GROUPS, OWN, group_of, judge
from reproduction.paper import PAPER_DISCOUNT, PAPER_TITLES, PAPER_WINDOW
from reproduction.topic import Judgements, StudyContext

NOT_DECIDED = ("undecided", "not run")
VERDICT_ORDER = ("holds", "does not hold", "depends on the settings", "undecided", "not run")
SYMBOLS = dict(zip(VERDICT_ORDER, ("✓", "✗", "◐", "?", "○"), strict=True))
CSS_CLASSES = dict(zip(VERDICT_ORDER, ("holds", "fails", "depends", "undecided", "not-run"), strict=True))


@dataclass(frozen=True)
class ShownVerdict:
    """A verdict as the page shows it."""

    word: str
    symbol: str
    css_class: str


@dataclass(frozen=True)
class CheckRow:
    """One check of a claim in words."""

    statement: str
    estimate: str
    interval: str
    seeds: str
    few: bool
    verdict: ShownVerdict
    note: str


@dataclass(frozen=True)
class SettingsRow:
    """What became of a claim under some settings."""

    settings: str
    verdict: ShownVerdict
    checks: tuple[CheckRow, ...]


@dataclass(frozen=True)
class ClaimRow:
    """One claim: its verdict, and under each of its settings the verdict and the checks that decide it."""

    id: str
    anchor: str
    figure: str
    text: str
    verdict: ShownVerdict
    settings: tuple[SettingsRow, ...]
    few: bool


# What one claim does, and what several do.
VERDICT_WORDS = {
    "holds": ("holds", "hold"),
    "does not hold": ("does not hold", "do not hold"),
    "depends on the settings": ("depends on the settings", "depend on the settings"),
    "undecided": ("is undecided", "are undecided"),
    "not run": ("was not played", "were not played"),
}


def counted_verdicts(claims: Sequence[Claim]) -> str:
    """How many claims have which verdict, in words.

    >>> counted_verdicts([Claim("F1", "1", "Something.", ())] * 2)
    '2 were not played'
    """
    verdicts: list[str] = [claim.verdict for claim in claims]
    amounts = {verdict: verdicts.count(verdict) for verdict in VERDICT_ORDER}
    return listed([f"{n} {VERDICT_WORDS[verdict][n > 1]}" for verdict, n in amounts.items() if n])


def claim_anchor(name: str) -> str:
    """Where the numbers behind a claim stand on the page."""
    return f"claim-{name.lower()}"


def shown_verdict(verdict: str) -> ShownVerdict:
    """A verdict in a word, with its symbol."""
    return ShownVerdict(verdict, SYMBOLS[verdict], CSS_CLASSES[verdict])


def _claim_row(claim: Claim) -> ClaimRow:
    return ClaimRow(
        id=claim.id,
        anchor=claim_anchor(claim.id),
        figure=f"Figure {claim.figure}" if claim.figure[:1].isdigit() else claim.figure,
        text=claim.text,
        verdict=shown_verdict(claim.verdict),
        settings=tuple(
            SettingsRow(found.settings, shown_verdict(found.verdict), tuple(map(_check_row, found.checks)))
            for found in claim.by_settings
        ),
        few=any(0 < check.seeds < check.paper_seeds for check in claim.checks),
    )


def _check_row(check: Check) -> CheckRow:
    estimate, around = interval(check.estimate, check.low, check.high, check.unit)
    seeds = f"{check.seeds:,}" if check.seeds else NOTHING
    return CheckRow(
        statement=check.statement,
        estimate=estimate,
        interval=around,
        seeds=f"{seeds} of {check.paper_seeds:,}" if check.paper_seeds else seeds,
        few=0 < check.seeds < check.paper_seeds,
        verdict=shown_verdict(check.verdict),
        note=check.note,
    )


TITLE = "Non-stationary kernel bandits: the experiments again"
THE_EXPERIMENTS = (
    "The experiments of Hong, Li and Tewari, “An Optimization-based Algorithm for Non-stationary Kernel Bandits "
    "without Prior Knowledge” (AISTATS 2023), played again with driftbandits"
)
THE_PAPER = (
    "The paper claims that ADA-OPKB, told nothing of how the world changes, outperforms rivals that are told; that a "
    "network can stand in for the kernel (ADA-OPNN); and that regret grows at nearly the best possible rate."
)
MOST_SETTINGS_NAMED = 2  # under which a claim holds, or does not


@dataclass(frozen=True)
class Theme:
    """Claims about one thing: how a sentence about it begins, and every claim as a clause after "that" or "whether"."""

    beginning: str
    clauses: Mapping[str, str]


THEMES = (
    Theme(
        "For rivals with settings from another world,",
        {
            "F1b-1": "SW-GPUCB loses to ADA-OPKB and ADA-OPNN on environment 2",
            "F1b-2": "WGPUCB loses to ADA-OPKB and is near ADA-OPNN on environment 2",
            "F2b-1": "SW-GPUCB and WGPUCB lose to ADA-OPKB and ADA-OPNN on slow drift",
        },
    ),
    Theme(
        "For rivals with settings that suit the world,",
        {
            "F1a-1": "SW-GPUCB leads ADA-OPKB and ADA-OPNN up to the switch of environment 1",
            "F2b-2": "SW-GPUCB with a window of 1,000 is the best of all on slow drift",
            "F1a-3": f"{PAPER_WINDOW:,} is SW-GPUCB’s best window on environment 1",
            "F1a-4": f"{PAPER_DISCOUNT} is WGPUCB’s best discount on environment 1",
        },
    ),
    Theme(
        "Of networks,",
        {
            "F1a-2": "the kernel beats the network on environment 1 (ADA-OPKB against ADA-OPNN)",
            "F2a-1": "training helps OPNN on the stationary cosine bandit",
            "F2a-2": "OPNN is near GPUCB and OPKB on the stationary cosine bandit",
        },
    ),
    Theme(
        "Of how fast regret grows,",
        {
            "T1": "ADA-OPKB keeps to its bound in rounds, segments, variation and dimension",
            "T2": "OPKB and OPNN keep to their bound where nothing changes",
            "T3": "the kernel rivals keep to their own bounds",
        },
    ),
    Theme(
        "For linear bandits,",
        {
            "LB-1": "ADA-OPKB’s regret grows no faster than its bound, which is minimax but for logarithms",
            "LB-2": "the linear rivals keep to their bounds",
            "LB-3": "ADA-OPKB has at most twice the regret of the best linear rival",
            "LB-4": "ADA-OPKB has the least regret of all that are told nothing",
        },
    ),
)


@dataclass(frozen=True)
class ClaimMark:
    """A claim behind a sentence: where its numbers are, and its verdict."""

    id: str
    anchor: str
    verdict: ShownVerdict


@dataclass(frozen=True)
class Finding:
    """One sentence of the answer, and the claims it is made from."""

    text: str
    marks: tuple[ClaimMark, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What the paper claims with how many claims hold, and one finding per theme."""

    lead: str
    findings: tuple[Finding, ...]


def make_answer(context: StudyContext) -> Answer | None:
    """The answer; None where nothing of the paper's was played."""
    claims = context.judgements.claims
    if not claims:
        return None
    best = least_regret(context)
    return Answer(
        lead=f"{THE_PAPER} Taken apart into {count(len(claims), 'claim')}: {counted_verdicts(claims)}.",
        findings=(*findings(claims), *([Finding(best)] if best else [])),
    )


def findings(claims: Sequence[Claim]) -> list[Finding]:
    """One sentence per theme of which anything is decided, one about claims of no theme, one line for all the rest.

    >>> [finding.text for finding in findings([Claim("T1", "Table 1", "Something.", ())])]
    ['Not decided by these runs:']
    """
    given = {claim.id: claim for claim in claims}
    themed = {name for theme in THEMES for name in theme.clauses}
    others = Theme("Besides,", {claim.id: claim.text.rstrip(".") for claim in claims if claim.id not in themed})
    found = []
    for theme in (*THEMES, others):
        here = [given[name] for name in theme.clauses if name in given and given[name].verdict not in NOT_DECIDED]
        if here:
            found.append(Finding(_sentence(theme, here), _marks(here)))
    rest = [claim for claim in claims if claim.verdict in NOT_DECIDED]
    return [*found, Finding("Not decided by these runs:", _marks(rest))] if rest else found


def _marks(claims: Sequence[Claim]) -> tuple[ClaimMark, ...]:
    return tuple(ClaimMark(c.id, claim_anchor(c.id), shown_verdict(c.verdict)) for c in claims)


def _sentence(theme: Theme, claims: Sequence[Claim]) -> str:
    parts = []
    for verdict in ("holds", "does not hold"):
        clauses = [f"that {theme.clauses[claim.id]}" for claim in claims if claim.verdict == verdict]
        if clauses:
            parts.append(f"it {verdict} {listed(clauses)}")
    for claim in claims:
        if claim.verdict == "depends on the settings":
            parts.append(f"whether {theme.clauses[claim.id]} depends on the settings ({_under(claim)})")
    return f"{theme.beginning} {'; '.join(parts)}."


def _under(claim: Claim) -> str:
    """Under which settings a claim holds and does not."""
    words = {"holds": "yes", "does not hold": "no"}
    under = {
        word: [found.settings for found in claim.by_settings if found.verdict == verdict]
        for verdict, word in words.items()
    }
    return "; ".join(f"{word} with {listed(names, MOST_SETTINGS_NAMED)}" for word, names in under.items() if names)


def least_regret(context: StudyContext) -> str:
    """Who has the least mean regret in each of the paper's worlds in which every policy has played on enough seeds."""
    worlds: dict[str, list[str]] = {}
    for experiment in context.begun(context.results.experiments):
        rows = context.summary(experiment).to_dict("records")
        enough = all(row["seeds"] >= LEAST_SEEDS for row in rows)
        if experiment.id in PAPER_TITLES and len(rows) == len(experiment.policies) > 1 and enough:
            best = min(rows, key=lambda row: float(row["regret"]))
            title = PAPER_TITLES[experiment.id].partition(":")[0]
            article = "" if title.startswith("Environment") else "the "  # which is a name
            world = f"{article}{title[:1].lower()}{title[1:]} ({best['seeds']} seeds)"
            worlds.setdefault(str(best["policy"]), []).append(world)
    if not worlds:
        return ""
    each = [f"{policy} on {listed(names)}" for policy, names in worlds.items()]
    return f"Of all that played, the least mean regret has {listed(each)}."


def banner(context: StudyContext) -> str:
    """One sentence on what is less than in the paper; nothing where nothing is."""
    parts = [*_few_seeds(context.judgements.claims), *_narrow(context.begun(context.results.experiments))]
    return f"{listed(parts)}." if parts else ""


def _few_seeds(claims: Sequence[Claim]) -> list[str]:
    checks = [check for claim in claims for check in claim.checks if check.paper_seeds and check.seeds]
    few = [check for check in checks if check.seeds < check.paper_seeds]
    if not few:
        return []
    least = min(few, key=lambda check: check.seeds / check.paper_seeds)
    which = f"{len(few):,} of {count(len(checks), 'comparison')} {'has' if len(few) == 1 else 'have'}"
    return [f"{which} fewer seeds than the paper’s (the fewest: {least.seeds:,} of {least.paper_seeds:,})"]


def _narrow(experiments: Sequence[Experiment]) -> list[str]:
    """Networks that are less wide than the catalogue has them."""
    pairs = set()
    for experiment in experiments:
        catalogue = EXPERIMENTS.get(experiment.id)
        wide = {} if catalogue is None else {policy.label: policy.settings for policy in catalogue.policies}
        for policy in experiment.policies:
            here, there = (_width(settings) for settings in (policy.settings, wide.get(policy.label, {})))
            if 0 < here < there:
                pairs.add((here, there))
    return [f"networks are {here:,} wide instead of {there:,}" for here, there in sorted(pairs)]


def _width(settings: Mapping[str, Any]) -> int:
    """How wide a network is; 0 where there is none, or one of infinite width."""
    width = settings.get("width")
    return width if isinstance(width, int) else 0


@dataclass(frozen=True)
class StudyPage(Page):
    """The page of a run, with what became of the paper's claims."""

    banner: str
    answer: Answer | None
    claims: tuple[ClaimRow, ...]


def write_report(
    results: Results,
    judgements: Judgements | None = None,
    *,
    out: Path,
    title: str = TITLE,
    about: Mapping[str, object] | None = None,
) -> Path:
    """Write `report.html` into `out`, and every figure as PNG and PDF into `out/figures`; gives the page's path.

    `judgements` are those of `judge`, if that was asked before; `about` is as for `driftbandits.report.write_report`.
    """
    judged = judge(results) if judgements is None else judgements
    anchors = frozenset(group.anchor for group in GROUPS)
    context = StudyContext(results, Path(out) / "figures", judged, anchors)
    what = {"what": THE_EXPERIMENTS} if judged.claims else {}
    page = StudyPage(
        **page_parts(context, make_chapters(context), title=title, about=about or {}, **what),
        banner=banner(context),
        answer=make_answer(context),
        claims=tuple(map(_claim_row, judged.claims)),
    )
    return write_page(page, out, template=Path(__file__).with_name("study.html"))


def make_chapters(context: StudyContext) -> list[Section]:
    """One chapter per group of which anything was played."""
    members = sort_experiments(context.results.experiments)
    sections = [
        Section(group.anchor, group.title, group.lead, tuple(group.blocks(context, members[group.anchor])))
        for group in (*GROUPS, OWN)
        if members[group.anchor]
    ]
    return [section for section in sections if section.blocks]


def sort_experiments(experiments: Sequence[Experiment]) -> dict[str, list[Experiment]]:
    """Experiments by the anchors of their chapters; whatever belongs to none of ours is the user's own.

    >>> sort_experiments([Experiment("mine", "Mine", "switching/1", {}, ())])["own"][0].id
    'mine'
    """
    members: dict[str, list[Experiment]] = {group.anchor: [] for group in (*GROUPS, OWN)}
    for experiment in experiments:
        members[group_of(experiment.id).anchor].append(experiment)
    return members
