"""The answer of the page: what the paper claims and what became of it, in a few sentences made from the verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from driftbandits.experiments.definitions.best_sizes import PAPER_DISCOUNT, PAPER_WINDOW
from driftbandits.experiments.definitions.ids import PAPER_TITLES
from driftbandits.experiments.judging.checks import Claim
from driftbandits.report.claims import ShownVerdict, claim_anchor, counted, shown_verdict
from driftbandits.report.context import ReportContext
from driftbandits.report.formats import count, listed

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
            "LB-1": "ADA-OPKB’s regret grows no faster than the minimax rate",
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


def make_answer(context: ReportContext) -> Answer | None:
    """The answer; None where nothing of the paper's was played."""
    claims = context.judgements.claims
    if not claims:
        return None
    best = least_regret(context)
    return Answer(
        lead=f"{THE_PAPER} Taken apart into {count(len(claims), 'claim')}: {counted(claims)}.",
        findings=(*findings(claims), *([Finding(best)] if best else [])),
    )


def findings(claims: Sequence[Claim]) -> list[Finding]:
    """One sentence per theme of which anything was played, then one about claims of no theme.

    >>> [finding.text for finding in findings([Claim("T1", "Table 1", "Something.", ())])]
    []
    """
    given = {claim.id: claim for claim in claims}
    themed = {name for theme in THEMES for name in theme.clauses}
    others = Theme("Besides,", {claim.id: claim.text.rstrip(".") for claim in claims if claim.id not in themed})
    found = []
    for theme in (*THEMES, others):
        here = [given[name] for name in theme.clauses if name in given]
        if any(claim.verdict != "not run" for claim in here):
            marks = tuple(ClaimMark(c.id, claim_anchor(c.id), shown_verdict(c.verdict)) for c in here)
            found.append(Finding(_sentence(theme, here), marks))
    return found


def _sentence(theme: Theme, claims: Sequence[Claim]) -> str:
    parts = []
    for verdict in ("holds", "does not hold"):
        clauses = [f"that {theme.clauses[claim.id]}" for claim in claims if claim.verdict == verdict]
        if clauses:
            parts.append(f"it {verdict} {listed(clauses)}")
    for claim in claims:
        if claim.verdict == "depends on the settings":
            parts.append(f"whether {theme.clauses[claim.id]} depends on the settings ({_under(claim)})")
    clauses = [f"whether {theme.clauses[claim.id]}" for claim in claims if claim.verdict == "undecided"]
    if clauses:
        parts.append(f"undecided is {listed(clauses)}")
    if any(claim.verdict == "not run" for claim in claims):
        parts.append("the rest was not played")  # the marks behind the sentence say what
    return f"{theme.beginning} {'; '.join(parts)}."


def _under(claim: Claim) -> str:
    """Under which settings a claim holds and does not."""
    words = {"holds": "yes", "does not hold": "no"}
    under = {
        word: [found.settings for found in claim.by_settings if found.verdict == verdict]
        for verdict, word in words.items()
    }
    return "; ".join(f"{word} with {listed(names, MOST_SETTINGS_NAMED)}" for word, names in under.items() if names)


def least_regret(context: ReportContext) -> str:
    """Who has the least mean regret in each of the paper's worlds in which every policy has played."""
    worlds: dict[str, list[str]] = {}
    for experiment in context.begun(context.results.experiments):
        rows = context.summary(experiment).to_dict("records")
        if experiment.id in PAPER_TITLES and len(rows) == len(experiment.policies) > 1:
            best = min(rows, key=lambda row: float(row["regret"]))
            worlds.setdefault(str(best["policy"]), []).append(experiment.title[:1].lower() + experiment.title[1:])
    if not worlds:
        return ""
    each = [f"{policy} on {listed([world.partition(':')[0] for world in names])}" for policy, names in worlds.items()]
    return f"Of all that played, the least mean regret has {listed(each)}."
