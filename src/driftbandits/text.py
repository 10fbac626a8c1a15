"""Values and names inside messages: short, in one line, and without codes that move the cursor or turn the text."""

from __future__ import annotations

import reprlib
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

_MOST_CHARACTERS = 100  # of a value or a name in a message
_MOST_DIGITS = 60  # of a whole number; Python itself refuses to write one of more than 4,300
_REORDERING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # they turn the text after them
_JOINERS = frozenset("\u200c\u200d")
_TAGS = frozenset(map(chr, range(0xE0020, 0xE0080)))  # in flags of England, Scotland and Wales
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")  # letters and marks that show nothing
_BYTE_ORDER_MARK = "\ufeff"  # invisible; where a file was read with "utf-8" in place of "utf-8-sig"
# control codes, half characters, separators of lines and of paragraphs
_BREAKING_CATEGORIES = frozenset(("Cc", "Cs", "Zl", "Zp"))


def shown(value: Any) -> str:
    """`repr(value)` for a message: a giant array or number is shortened, and a repr that fails does no harm.

    >>> shown([0.5] * 1000)
    '[0.5, 0.5, 0.5, 0.5, ...]'
    >>> shown(-(10**400))
    '-1000000000...0000000000 (401 digits)'
    """
    return _shortened(" ".join(line.strip() for line in _SHORT.repr(value).splitlines()))


def label(name: str) -> str:
    r"""A name inside a text: as it is, or quoted and escaped where it would be invisible or break the text.

    >>> label("14 EUR"), label("14\nEUR"), label("")
    ('14 EUR', "'14\\nEUR'", "''")
    """
    odd = not name or name != name.strip() or breaking(name) is not None
    return _shortened(repr(name) if odd else name)


def counted(number: int, noun: str) -> str:
    """A number of things in words.

    >>> counted(1, "arm"), counted(12_000, "arm"), counted(2, "policy")
    ('1 arm', '12,000 arms', '2 policies')
    """
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun.removesuffix('y')}ies" if noun.endswith("cy") else f"{number:,} {noun}s"


def first_line(error: BaseException) -> str:
    """The first line of what an error says, or its class where it says nothing.

    >>> first_line(ValueError("wrong\\nin detail")), first_line(ValueError())
    ('wrong', 'ValueError')
    """
    return (str(error).splitlines() or [""])[0].strip() or type(error).__name__


def breaking(text: str) -> str | None:
    r"""The first character that breaks a line, drives a terminal, reorders the text or cannot be written; or None.

    Spaces of all kinds, joiners (words of Persian or Hindi need them) and emoji are fine.

    >>> breaking("14\tEUR"), breaking("caf\u00e9 \U0001f600")
    ('\t', None)
    """
    if text.isascii() and text.isprintable():  # nearly all names
        return None
    for character in text:
        if (
            unicodedata.category(character) in _BREAKING_CATEGORIES
            or character in _REORDERING
            or character == _BYTE_ORDER_MARK
        ):
            return character
    return None


def invisible(text: str) -> str | None:
    r"""The first character that cannot be seen, so that two names look the same; or None.

    Joiners belong to words of Persian or Hindi and to emoji: between two of their characters they are fine.

    >>> invisible("a\u200bb"), invisible("a\u200d"), invisible("\u0645\u06cc\u200c\u062e")
    ('\u200b', '\u200d', None)
    """
    if text.isascii():
        return None
    for place, character in enumerate(text):
        if character in _JOINERS:
            if place in (0, len(text) - 1) or text[place - 1].isascii() or text[place + 1].isascii():
                return character
        elif character in _BLANKS or (unicodedata.category(character) == "Cf" and character not in _TAGS):
            return character
    return None


def aligned(rows: Sequence[Sequence[str]], *, left: Iterable[bool]) -> list[str]:
    """Rows of a table as lines of text, their columns aligned to the `left` or to the right.

    >>> aligned([["arm", "plays"], ["red", "7"]], left=[True, False])
    ['arm  plays', 'red      7']
    """
    columns = list(zip([max(map(len, column)) for column in zip(*rows, strict=True)], left, strict=True))
    return [
        "  ".join(
            text.ljust(width) if to_left else text.rjust(width)
            for text, (width, to_left) in zip(row, columns, strict=True)
        ).rstrip()
        for row in rows
    ]


def _shortened(text: str) -> str:
    if len(text) <= _MOST_CHARACTERS:
        return text
    end = _MOST_CHARACTERS // 3
    return f"{text[: _MOST_CHARACTERS - end - 3]}...{text[-end:]}"


class _Short(reprlib.Repr):
    """Python's own short repr, with room for a few numbers in full."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = self.maxarray = 4
        self.maxstring = self.maxother = _MOST_CHARACTERS

    def repr_int(self, x: int, level: int) -> str:  # noqa: ARG002  (the base class calls it so)
        """A whole number; a long one by its ends, found by arithmetic."""
        size = abs(x)
        if size < 10**_MOST_DIGITS:
            return repr(x)
        digits = _digits(size)
        first, last = size // 10 ** (digits - 10), size % 10**10
        return f"{'-' if x < 0 else ''}{first}...{last:010} ({digits:,} digits)"


def _digits(number: int) -> int:
    """How many digits a large whole number has, without writing it."""
    about = int((number.bit_length() - 1) * 0.30102999566398120)  # log10 of 2; one too few at most
    return about + (2 if number >= 10 ** (about + 1) else 1)


_SHORT = _Short()
