"""Configuration files, YAML or TOML, as plain values; what is wrong in one is said with its file, line and column."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftbandits.errors import InputError, MissingExtraError
from driftbandits.text import shown

try:
    import yaml
except ModuleNotFoundError:
    raise MissingExtraError("pyyaml", extra="experiments", purpose="a configuration file") from None

CONFIG_SUFFIXES = (".yaml", ".yml", ".json", ".toml")  # JSON is YAML
YAML_KEY_TAGS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge")
MOST_LEVELS = 50  # of mappings and lists inside one another
MOST_VALUES = 100_000  # which take seconds to read
MOST_FILE_BYTES = 10 * 2**20


class _Loader(yaml.SafeLoader):
    """YAML in which 1e-8 is a number, as in version 1.2, keys are texts, and a key given twice is an error.

    Its size is limited as if every alias were written out: ten lines of aliases of aliases stand for billions of
    values, over which whatever walks through them later would never end.
    """

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0
        self._values = 0
        self._sizes: dict[int, int] = {}  # values at and below a node, aliases written out
        self.wrong_keys: list[yaml.constructor.ConstructorError] = []

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        alias, before = self.check_event(yaml.AliasEvent), self._values
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        self._depth += 1
        if self._depth > MOST_LEVELS:
            raise yaml.composer.ComposerError(None, None, f"it is nested more than {MOST_LEVELS} levels deep", mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if alias and id(node) not in self._sizes:
            raise yaml.composer.ComposerError(None, None, "an alias stands inside of what it stands for", mark)
        self._values += self._sizes[id(node)] if alias else 1
        if self._values > MOST_VALUES:
            problem = f"it holds more than {MOST_VALUES:,} values, aliases written out; data belong into other files"
            raise yaml.composer.ComposerError(None, None, problem, mark)
        self._sizes[id(node)] = self._values - before
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        sound: list[tuple[yaml.Node, yaml.Node]] = []
        seen: set[str] = set()
        for key, value in node.value:
            problem = _key_problem(key, seen)
            if problem:
                self.wrong_keys.append(yaml.constructor.ConstructorError(None, None, problem, key.start_mark))
            else:
                sound.append((key, value))
                seen.add(key.value)
        node.value = sound  # what is wrong is told of when all has been read
        return super().construct_mapping(node, deep=deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, OverflowError) as error:  # a date that there is not, a number of thousands of digits
            raise yaml.constructor.ConstructorError(None, None, str(error), node.start_mark) from None


def _key_problem(key: yaml.Node, seen: set[str]) -> str:
    """What is wrong with a key of a mapping, empty if nothing is."""
    if key.tag not in YAML_KEY_TAGS:
        written = f"{key.value!r} " if isinstance(key, yaml.ScalarNode) else ""
        return f"the key {written}is not a text; put it in quotes"
    return f"{key.value!r} is given twice" if key.value in seen and key.value != "<<" else ""


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


def read_config_file(path: Path, *, needs: Sequence[str], example: str) -> ConfigFile:
    """Read a YAML, JSON or TOML file that holds a mapping. Raises InputError with the place of what is wrong.

    `needs` are the keys without which it says nothing, and `example` is one of them with a value, for messages.
    """
    if path.suffix not in CONFIG_SUFFIXES:
        raise InputError(f"{path} is neither YAML nor TOML by its name; it must end in {', '.join(CONFIG_SUFFIXES)}")
    try:
        text = _read_text(path)
    except FileNotFoundError:
        raise InputError(f"there is no file {str(path)!r}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    file = _read_toml(path, text) if path.suffix == ".toml" else _read_yaml(path, text)
    if file.values is None or file.values == {}:
        raise InputError(f"{path} is empty; it needs at least {' and '.join(map(repr, needs))}")
    if not isinstance(file.values, dict):
        raise InputError(f"{path} holds {_kind(file.values)}; it must hold keys with values, as in {example!r}")
    return file


def read_value(text: str) -> Any:
    """A YAML value from the command line: 500, 1e-8, true, text, [1, 2], {name: rbf}.

    >>> read_value("1e-8"), read_value("[1500, 5000]"), read_value("clip")
    (1e-08, [1500, 5000], 'clip')
    """
    try:
        value, wrong = _load(text)
    except yaml.YAMLError as error:
        raise InputError(f"{shown(text)} is not a value: {_problem(error)}") from None
    if wrong:
        raise InputError(f"{shown(text)} is not a value: {'; '.join(map(_problem, wrong))}")
    return value


def _load(text: str) -> tuple[Any, list[yaml.constructor.ConstructorError]]:
    """The value, and what is wrong with keys in it."""
    loader = _Loader(text)
    try:
        return loader.get_single_data(), loader.wrong_keys
    finally:
        loader.dispose()


def _read_text(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(MOST_FILE_BYTES + 1)
    if len(content) > MOST_FILE_BYTES:
        raise InputError(f"{path} has more than {MOST_FILE_BYTES // 2**20} MiB; data belong into other files")
    return content.decode("utf-8")


def _read_yaml(path: Path, text: str) -> ConfigFile:
    try:
        values, wrong = _load(text)
        node = yaml.compose(text, _Loader)
    except yaml.YAMLError as error:
        raise InputError(_with_place(path, error)) from None
    if wrong:
        raise InputError("\n".join(_with_place(path, error) for error in wrong))
    return ConfigFile(path, values, node)


def _with_place(path: Path, error: yaml.YAMLError) -> str:
    """What is wrong, and where; a character that YAML forbids has no place."""
    mark = (error.problem_mark or error.context_mark) if isinstance(error, yaml.MarkedYAMLError) else None
    place = "" if mark is None else f":{_position(mark)}"
    return f"{path}{place}: {_problem(error)}"


def _read_toml(path: Path, text: str) -> ConfigFile:
    try:
        return ConfigFile(path, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        reason, _, place = str(error).rpartition(" (at ")
        found = re.match(r"line (\d+), column (\d+)", place)
        last = text.splitlines() or [""]
        line, column = (found[1], found[2]) if found else (len(last), len(last[-1]) + 1)  # "at end of document"
        raise InputError(f"{path}:{line}:{column}: {reason}") from None
    except ValueError as error:  # a number of thousands of digits
        raise InputError(f"{path}: {error}") from None
    except RecursionError:
        raise InputError(f"{path} is nested too deep; {MOST_LEVELS} levels are enough") from None


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
