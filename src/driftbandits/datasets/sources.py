"""Where the data lie: files of installed packages, found without importing the package."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from driftbandits.errors import MissingDataError


def data_file(module: str, path: str, *, package: str, dataset: str) -> Path:
    """Path of a file inside the installed `module`, which `package` (with its version, as pip wants it) brings.

    The module is not imported: the packages that bring data want far more than their data need. Raises MissingDataError
    with the install line where the module or the file is not there.
    """
    spec = importlib.util.find_spec(module)
    folders = [] if spec is None or spec.submodule_search_locations is None else spec.submodule_search_locations
    for folder in folders:
        file = Path(folder) / path
        if file.is_file():
            return file
    raise MissingDataError(
        f"the data set {dataset!r} needs {package}; install it with: pip install --no-deps {package}"
    )
