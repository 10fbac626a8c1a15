"""Which versions of other packages are installed."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata


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
