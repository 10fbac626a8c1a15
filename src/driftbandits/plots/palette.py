"""One line style per policy, the same in every figure: colours tell algorithms apart, dashes their variants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from driftbandits.policies import GPUCB, POLICIES, Master

# Colours of policies are Okabe and Ito's, with Tol's where those run out: told apart with any kind of colour vision.
COLOURS = {
    **{
        name: kind.colour
        for kind in POLICIES.values()
        if kind.colour is not None
        for name in (kind.label, kind.__name__)
    },
    "OPNN0": "#8C510A",  # OPNN that is not trained
    f"{GPUCB.label}+{Master.label}": "#332288",
}
OTHER_COLOURS = ("#44AA99", "#661100", "#6699CC", "#DDAA33", "#AA4466", "#4477AA", "#7F7FBF", "#BB5566")

Dashes = str | tuple[int, tuple[float, ...]]
SOLID: Dashes = "-"
DASHES: tuple[Dashes, ...] = (
    SOLID,
    (0, (4.5, 1.6)),
    (0, (1.2, 1.2)),
    (0, (6, 1.5, 1.2, 1.5)),
    (0, (6, 1.5, 1.2, 1.5, 1.2, 1.5)),
    (0, (9, 2)),
)
# Places in DASHES; where two want the same, the first listed here gets it.
WANTED_DASHES = {
    "": 0,
    "tuned": 0,
    "plain": 0,
    "published": 1,
    "published, length scale 1": 2,
    "window 1000": 3,
    "infinite width": 0,
}
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


@dataclass(frozen=True)
class LineStyle:
    """How a policy is drawn: its algorithm's colour, and the dashes of the variant."""

    colour: str
    dashes: Dashes


def algorithm(label: str) -> str:
    """What comes before the first bracket or comma of a label.

    >>> algorithm("ADA-OPKB (published, length scale 1)"), algorithm("OPNN, five matrices"), algorithm("(mine)")
    ('ADA-OPKB', 'OPNN', '(mine)')
    """
    return label.partition(" (")[0].partition(",")[0].strip() or label


def variant(label: str) -> str:
    """The rest of a label, without brackets and commas around it.

    >>> variant("SW-GPUCB (window 1000)"), variant("OPNN, five matrices"), variant("OPKB")
    ('window 1000', 'five matrices', '')
    """
    return label.removeprefix(algorithm(label)).strip(" ,()")


def line_styles(*figures: Iterable[str], own: Mapping[str, str] | None = None) -> dict[str, LineStyle]:
    """A line style for each label; every argument holds the labels that stand in one figure.

    `own` are colours of algorithms that choose theirs; of the library's own they are known.

    Solid is the plain or tuned variant, dashed the published one. Known algorithms always have the same colour; others
    take spare ones in their order, and share them again when there are too many. Two variants of one algorithm never
    share their dashes in a figure while there are any left.

    >>> found = line_styles(["OPKB", "OPKB (published)", "mine"])
    >>> found["OPKB"].colour == found["OPKB (published)"].colour, found["OPKB"].dashes, found["mine"].colour
    (True, '-', '#44AA99')
    """
    together = [dict.fromkeys(labels) for labels in figures]
    distinct = list(dict.fromkeys(label for labels in together for label in labels))
    known = {**(own or {}), **COLOURS}
    unknown = [a for a in dict.fromkeys(map(algorithm, distinct)) if a not in known]
    colours = known | {a: OTHER_COLOURS[number % len(OTHER_COLOURS)] for number, a in enumerate(unknown)}
    order = {variant: place for place, variant in enumerate(WANTED_DASHES)}
    dashes: dict[str, int] = {}
    # known variants choose first, so that a published one is dashed whoever else is there
    for label in sorted(distinct, key=lambda name: order.get(variant(name), len(order))):
        near = {other for labels in together if label in labels for other in labels}
        used = {dashes[other] for other in near & dashes.keys() if algorithm(other) == algorithm(label)}
        dashes[label] = _free_dashes(WANTED_DASHES.get(variant(label), 2), used)
    return {label: LineStyle(colours[algorithm(label)], DASHES[dashes[label]]) for label in distinct}


def _free_dashes(wish: int, used: set[int]) -> int:
    order = [wish, *range(2, len(DASHES)), 1, 0]
    return next((number for number in order if number not in used), wish)
