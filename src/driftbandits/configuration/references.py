"""Classes of others: the user's own, named `file.py:Class` or `package.module:Class`, and those that installed packages
register as entry points `driftbandits.policies` and `driftbandits.environments`, which have a name like ours.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from driftbandits.environments.registry import ENVIRONMENTS
from driftbandits.errors import InputError
from driftbandits.policies import POLICIES

_DIGESTS: dict[str, str | None] = {}  # of modules, when they were loaded


def is_reference(name: str) -> bool:
    """Whether `name` points at a user's class rather than a registered one."""
    return ":" in name


def resolve(name: str, *, folder: Path | None = None) -> str:
    """The reference with its file as an absolute path, so that worker processes find it; other names as they are.

    A file is looked for in `folder`, if one is given, and then in the working directory. `my_module:MyPolicy` is looked
    for as my_module.py in the working directory first.
    """
    if not is_reference(name):
        return name if name in POLICIES or name in ENVIRONMENTS else registered_by_others().get(name, name)
    module, _, attribute = name.rpartition(":")
    if folder is not None and module.endswith(".py") and (folder / module).is_file():
        return f"{(folder / module).resolve()}:{attribute}"
    for file in (Path(module), Path(f"{module}.py")):
        if file.suffix == ".py" and file.is_file():
            return f"{file.resolve()}:{attribute}"
    if module.endswith(".py"):
        raise InputError(f"there is no file {module!r}; give its path, as in path/to/{Path(module).name}:{attribute}")
    return name


@lru_cache
def registered_by_others(group: str | None = None) -> dict[str, str]:
    """References by name, of one group (`driftbandits.policies`) or of both."""
    groups = (f"driftbandits.{kind}" for kind in ("policies", "environments")) if group is None else (group,)
    return {entry.name: entry.value for each in groups for entry in entry_points(group=each)}


def load(name: str) -> Any:
    """The class or function that a resolved reference names."""
    module, _, attribute = name.rpartition(":")
    loaded = _load_module(module, source_of(name))
    if not hasattr(loaded, attribute):
        public = [key for key in vars(loaded) if not key.startswith("_")]
        raise InputError(f"{module} has no {attribute!r}; it has: {', '.join(public)}")
    return getattr(loaded, attribute)


def loaded(name: str) -> Any:
    """The class or function that a resolved reference names if its module was loaded already, or else None."""
    module, _, attribute = name.rpartition(":")
    known = _name_of(Path(module), source_of(name)) if module.endswith(".py") else module
    return getattr(sys.modules.get(known), attribute, None)


def source_of(name: str) -> str | None:
    """Digest of the file a reference names, so that editing it makes a new run; None for registered names."""
    if not is_reference(name):
        return None
    file = _file_of(name.rpartition(":")[0])
    return hashlib.sha256(file.read_bytes()).hexdigest() if file is not None and file.is_file() else None


def _file_of(module: str) -> Path | None:
    if module.endswith(".py"):
        return Path(module)
    found = _find(module)
    return Path(found.origin) if found is not None and found.origin else None


def _find(module: str) -> Any:
    """Where a module would come from. `importlib.util.find_spec` would import the packages that it lies in."""
    found: Any = None
    places: list[str] | None = None
    name = ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        specs = (finder.find_spec(name, places) for finder in sys.meta_path if hasattr(finder, "find_spec"))
        found = next((spec for spec in specs if spec is not None), None) if part else None
        if found is None:
            return None
        locations = found.submodule_search_locations or []
        places = list(getattr(locations, "_path", locations))  # one of a namespace would ask for its imported parent
    return found


def _name_of(file: Path, digest: str | None) -> str:
    """What the module of a file is called; two files may have the same stem."""
    return f"driftbandits_user_{file.stem}_{(digest or '')[:8]}"


@lru_cache
def _load_module(module: str, digest: str | None) -> ModuleType:
    if not module.endswith(".py"):
        if _find(module) is None:
            raise InputError(f"there is no module {module!r} here; name its file instead, as in my_policy.py:MyPolicy")
        if _DIGESTS.setdefault(module, digest) != digest:  # Python would go on with what it has imported
            raise InputError(f"module {module!r} was changed after it was loaded; begin again in a new process")
        return importlib.import_module(module)
    file = Path(module)
    if not file.is_file():
        raise InputError(f"there is no file {module!r} on this machine; workers read it at the same path")
    name = _name_of(file, digest)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise InputError(f"{module!r} is not a Python file")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded  # dataclasses and pickles look their module up by name
    sys.path.insert(0, str(file.parent))  # its neighbours may be imported
    try:
        spec.loader.exec_module(loaded)
    finally:
        sys.path.remove(str(file.parent))
    return loaded
