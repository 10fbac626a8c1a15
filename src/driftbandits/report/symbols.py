"""The paper's symbols in HTML, as people read them."""

from __future__ import annotations

import html
import re

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
