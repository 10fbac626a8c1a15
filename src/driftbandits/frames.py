"""Tables for pandas, which is an extra: loaded where a table is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driftbandits.errors import MissingExtraError


def data_frame(columns: Mapping[str, Any], *, purpose: str) -> Any:
    """A DataFrame with these columns; MissingExtraError says what to install where there is no pandas.

    >>> data_frame({"arm": [0, 1]}, purpose="an example").shape
    (2, 1)
    """
    try:
        import pandas
    except ImportError:
        raise MissingExtraError("pandas", extra="experiments", purpose=purpose) from None
    return pandas.DataFrame(dict(columns))
