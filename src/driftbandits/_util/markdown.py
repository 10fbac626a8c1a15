"""Names of the user's own inside Markdown and CSV: shown as they are written, never read as markup or as formulas."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_MARKUP = re.compile(r"[\\`*|\[\]]")
_TAGS = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_BREAKS = re.compile(r"[\t\r\n]+")
_FORMULA = ("=", "+", "-", "@")  # how a formula begins in a spreadsheet


def markdown(text: object) -> str:
    r"""A text inside a Markdown table: in one line, without new columns, links, code or HTML.

    >>> print(markdown("a|b\n<b>[c](d)</b>"))
    a\|b &lt;b&gt;\[c\](d)&lt;/b&gt;
    """
    marked = _MARKUP.sub(r"\\\g<0>", " ".join(str(text).split()))
    return "".join(_TAGS.get(character, character) for character in marked)


def csv(table: pd.DataFrame) -> str:
    """The table as CSV, a line per row; texts that a spreadsheet would take for formulas get an apostrophe before them.

    >>> import pandas as pd
    >>> print(csv(pd.DataFrame({"policy": ["=1+1", "mine"], "regret": [-1.5, 2.0]})))
    policy,regret
    '=1+1,-1.5
    mine,2.0
    <BLANKLINE>
    """
    words = table.select_dtypes(exclude="number").columns
    return table.assign(**{name: table[name].map(_no_formula) for name in words}).to_csv(index=False)


def _no_formula(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    line = _BREAKS.sub(" ", value)
    return f"'{line}" if line.lstrip().startswith(_FORMULA) else line
