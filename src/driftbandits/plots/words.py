"""Text for matplotlib: labels as they stand, and the paper's symbols as people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

AXIS_LABELS = {
    "T": "rounds $T$",
    "L_T": "segments $L_T$",
    "V_T": "variation $V_T$, in turns of the drift",
    "d": "dimension $d$",
    "log N": "arms $N$, spaced by $\\log\\,\\log N$",
}
_SYMBOL = re.compile(r"\b(?:([LV])_T|gamma_T)\b")


def plain(text: str) -> str:
    """Text that matplotlib shows as it stands: no formula between dollars, no label hidden by an underscore.

    >>> plain("_costs $5")
    '\\u200b_costs \\\\$5'
    """
    hidden = "\u200b" if text.startswith("_") else ""
    return hidden + text.replace("$", r"\$")


def axis_label(symbol: str) -> str:
    """A quantity in words, with its symbol.

    >>> axis_label("L_T"), axis_label("x")
    ('segments $L_T$', 'x')
    """
    return AXIS_LABELS.get(symbol) or in_formulas(symbol)


def in_formulas(text: str) -> str:
    """The text for matplotlib, with raw symbols as formulas.

    >>> in_formulas("log L_T for $5"), in_formulas("gamma_T")
    ('log $L_T$ for \\\\$5', '$\\\\gamma_T$')
    """
    return _SYMBOL.sub(lambda found: f"${found[1]}_T$" if found[1] else r"$\gamma_T$", plain(text))


def ticks_of(symbol: str) -> Callable[[float], str] | None:
    """How the values along a sweep are written; None: as numbers."""
    return (lambda value: f"{math.exp(value):.0f}") if symbol == "log N" else None
