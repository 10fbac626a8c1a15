"""Optional packages: which are installed, and tables of pandas where it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import Any

from driftbandits.errors import MissingExtraError


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """Versions of those of these packages that are installed, by name; nothing is imported.

    >>> list(installed_versions(["numpy", "no-such-package"]))
    ['numpy']
    """
    found = {}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


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
