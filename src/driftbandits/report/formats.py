"""Numbers as people read them."""

from __future__ import annotations

import math

NOTHING = "–"


def number(value: float) -> str:
    """Thousands apart, and three digits or so.

    >>> [number(x) for x in (12345.6, 99.96, 3.14159, 0.01234, 0.0, float("nan"))]
    ['12,346', '100', '3.1', '0.012', '0', '–']
    """
    if math.isnan(value):
        return NOTHING
    if value == 0:
        return "0"
    size = abs(value)
    text = f"{value:,.0f}" if size >= 99.95 else f"{value:.1f}" if size >= 1 else f"{value:.2g}"
    return text.replace("-", "−", 1)


def with_error(mean: float, error: float) -> str:
    """A mean with its standard error, to the digits that the error leaves; one run has none.

    >>> with_error(3721.4, 155.6), with_error(0.5312, 0.0123), with_error(42.0, float("nan"))
    ('3,721 ± 156', '0.531 ± 0.012', '42.0')
    """
    if math.isnan(mean):
        return NOTHING
    if math.isnan(error):
        return number(mean)
    places = min(decimals(error), most_decimals(mean))
    return f"{mean:,.{places}f} ± {error:,.{places}f}".replace("-", "−")


def decimals(error: float) -> int:
    """Decimal places that show two digits of an error, and no more than four."""
    if not error > 0 or math.isinf(error):
        return 0
    return min(4, max(0, 1 - math.floor(math.log10(error))))


def most_decimals(mean: float) -> int:
    """Decimal places beyond which nobody reads a number of this size.

    >>> [most_decimals(x) for x in (12_345.0, -260.3, 26.0, 0.26)]
    [0, 1, 2, 4]
    """
    size = abs(mean)
    return 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 1 else 4


def interval(estimate: float, low: float, high: float, unit: str) -> tuple[str, str]:
    """An estimate and its interval, slopes to two places and signed regret to whole numbers.

    >>> interval(-1200.4, -1500.2, -900.1, "regret"), interval(0.512, 0.48, 0.55, "slope")
    (('−1,200', '−1,500 to −900'), ('0.51', '0.48 to 0.55'))
    """

    def form(value: float) -> str:
        return (f"{value:.2f}" if unit == "slope" else f"{value:,.0f}").replace("-", "−")

    if math.isnan(estimate):
        return NOTHING, ""
    return form(estimate), "" if math.isnan(low) else f"{form(low)} to {form(high)}"


def duration(seconds: float) -> str:
    """A time in the units one would say.

    >>> [duration(x) for x in (0.0234, 5.21, 250, 4000, 90_000)]
    ['0.023 s', '5.2 s', '4 min 10 s', '1 h 6 min', '25 h']
    """
    if math.isnan(seconds):
        return NOTHING
    if seconds < 99.5:
        return f"{number(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 10 and minutes else f"{hours} h"


def count(amount: int, one: str, many: str = "") -> str:
    """An amount with its noun.

    >>> count(1, "seed"), count(1200, "run")
    ('1 seed', '1,200 runs')
    """
    return f"{amount:,} {one if amount == 1 else many or one + 's'}"


def listed(items: list[str], limit: int = 0) -> str:
    """Words with commas, the last after "and"; beyond `limit` (if any) only how many more.

    >>> listed(["a", "b", "c"]), listed(["a", "b", "c", "d"], 2)
    ('a, b and c', 'a, b and 2 more')
    """
    if limit and len(items) > limit + 1:
        items = [*items[:limit], f"{len(items) - limit} more"]
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + f" and {items[-1]}" if items else ""
