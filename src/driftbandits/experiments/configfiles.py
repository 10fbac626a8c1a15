"""Configuration files, YAML or TOML, as plain values; what is wrong in one is said with its file, line and column."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftbandits.errors import InputError, MissingExtraError

try:
    import yaml
except ModuleNotFoundError:
    raise MissingExtraError("pyyaml", extra="experiments", purpose="a configuration file") from None

SUFFIXES = (".yaml", ".yml", ".json", ".toml")  # JSON is YAML


class _Loader(yaml.SafeLoader):
    """YAML in which 1e-8 is a number, as in version 1.2, and a key given twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen and key.value != "<<":
                raise yaml.constructor.ConstructorError(None, None, f"{key.value!r} is given twice", key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep=deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)


@dataclass(frozen=True)
class ConfigFile:
    """A file that was read: its values, and for YAML where each of them stands."""

    path: Path
    values: dict[str, Any]
    node: Any = None

    def where(self, location: Sequence[str | int]) -> str:
        """`file:line:column` of the value at `location`, or of the nearest one around it; for TOML the file alone."""
        node = mark = self.node
        for step in location:
            children = _children(node)
            if step not in children:
                break
            mark, node = children[step]
        return str(self.path) if mark is None else f"{self.path}:{_position(mark.start_mark)}"


def read_config_file(path: Path) -> ConfigFile:
    """Read a YAML, JSON or TOML file that holds a mapping. Raises InputError with the place of what is wrong."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path} is neither YAML nor TOML by its name; it must end in {', '.join(SUFFIXES)}")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"there is no file {str(path)!r}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    file = _read_toml(path, text) if path.suffix == ".toml" else _read_yaml(path, text)
    if file.values is None or file.values == {}:
        raise InputError(f"{path} is empty; it needs at least 'environment' and 'policies'")
    if not isinstance(file.values, dict):
        raise InputError(
            f"{path} holds {_kind(file.values)}; it must hold keys with values, as in 'environment: switching/1'"
        )
    return file


def read_value(text: str) -> Any:
    """A YAML value from the command line: 500, 1e-8, true, text, [1, 2], {name: rbf}.

    >>> read_value("1e-8"), read_value("[1500, 5000]"), read_value("clip")
    (1e-08, [1500, 5000], 'clip')
    """
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise InputError(f"{text!r} is not a value: {_problem(error)}") from None


def _read_yaml(path: Path, text: str) -> ConfigFile:
    try:
        return ConfigFile(path, yaml.load(text, _Loader), yaml.compose(text, _Loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = "" if mark is None else f":{_position(mark)}"
        raise InputError(f"{path}{place}: {_problem(error)}") from None
    except yaml.YAMLError as error:  # a character that YAML forbids
        raise InputError(f"{path}: {_problem(error)}") from None


def _read_toml(path: Path, text: str) -> ConfigFile:
    try:
        return ConfigFile(path, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        reason, _, place = str(error).rpartition(" (at ")
        found = re.match(r"line (\d+), column (\d+)", place)
        last = text.splitlines() or [""]
        line, column = (found[1], found[2]) if found else (len(last), len(last[-1]) + 1)  # "at end of document"
        raise InputError(f"{path}:{line}:{column}: {reason}") from None


def _problem(error: yaml.YAMLError) -> str:
    """One line of what PyYAML says over many."""
    if isinstance(error, yaml.MarkedYAMLError):
        return ", ".join(part for part in (error.context, error.problem) if part)
    return " ".join(str(error).split())


def _position(mark: Any) -> str:
    return f"{mark.line + 1}:{mark.column + 1}"


def _children(node: Any) -> dict[str | int, tuple[Any, Any]]:
    """What is below a node: for a key the node to point at (the key) and the node to go on from (its value)."""
    if isinstance(node, yaml.MappingNode):
        return {key.value: (key, value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return {number: (item, item) for number, item in enumerate(node.value)}
    return {}


def _kind(value: Any) -> str:
    return "a list" if isinstance(value, list) else f"the value {value!r}"
