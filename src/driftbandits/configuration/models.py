"""Everything that is wrong said at once: who mends a file wants all of it, not one thing per run."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, TypeVar, get_args

from driftbandits.configuration.files import ConfigFile
from driftbandits.errors import DriftbanditsError, InputError, MissingExtraError, did_you_mean
from driftbandits.policies import Constants, Variant
from driftbandits.text import breaking, shown


class Problems:
    """Collects errors of ours, and raises them together.

    >>> problems = Problems()
    >>> for value in (-1, 2, -3):
    ...     with problems.noted():
    ...         if value < 0:
    ...             raise InputError(f"{value} is negative")
    >>> problems.raise_all()
    Traceback (most recent call last):
    ...
    driftbandits.errors.InputError: -1 is negative
    -3 is negative
    """

    def __init__(self) -> None:
        self._found: list[DriftbanditsError] = []

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """What goes wrong inside is noted, and the rest of it is left out."""
        try:
            yield
        except DriftbanditsError as error:
            self._found.append(error)

    def raise_all(self) -> None:
        """Raise what was noted: one error as it is, several as one with a line each."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            raise InputError("\n".join(dict.fromkeys(map(str, self._found))))


MOST_NAME_BYTES = 200  # file systems end at 255, and figures add to it
# Windows has devices of these names in every folder.
WINDOWS_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}
)


def check_name(name: str, what: str) -> str:
    """Give `name` back if it can be shown in one line of a table.

    >>> check_name("window 500", "label")
    'window 500'
    """
    if not name.strip():
        raise InputError(f"{what} {name!r} is blank; name it in a word or two")
    if (odd := breaking(name)) is not None:
        raise InputError(f"{what} {shown(name)} has the control character {odd!r}; leave it out")
    if (size := len(name.encode())) > MOST_NAME_BYTES:
        raise InputError(f"{what} {shown(name)} has {size:,} bytes; it may have {MOST_NAME_BYTES}")
    return name


def folder_name(name: str, what: str = "id") -> str:
    """The name of a folder for what is called `name`: one folder, below wherever it is put.

    >>> folder_name("switching/1"), folder_name("a: <b>")
    ('switching-1', 'a- -b')
    >>> folder_name("..")
    Traceback (most recent call last):
    ...
    driftbandits.errors.InputError: id '..' cannot name a folder; begin it with a letter or a digit
    """
    check_name(name, what)
    if set(name.split("/")) & {"", ".", ".."} or name.startswith("."):
        raise InputError(f"{what} {name!r} cannot name a folder; begin it with a letter or a digit")
    folder = re.sub(r"[^\w.+=, ()-]+", "-", name).strip(" .-")
    if not folder or folder.partition(".")[0].strip().lower() in WINDOWS_DEVICES:
        raise InputError(f"{what} {name!r} cannot name a folder; choose another")
    return folder


def default_label(name: str) -> str:
    """What a policy is called where nothing is said: its name, or that of its class.

    >>> default_label("AdaOPKB"), default_label("/home/me/mine.py:MyPolicy")
    ('AdaOPKB', 'MyPolicy')
    """
    return name.rpartition(":")[2]


PRESETS: dict[str, dict[str, Any]] = {
    "constants": {
        "tuned": Constants.tuned,
        "published": Constants.published,
        "neural": Constants.neural,
        "published_neural": Constants.published_neural,
        "published_stationary": Constants.published_stationary,
        "theory": partial(Constants.theory, bound=3.0, noise=0.3),  # about what the paper's worlds have
    },
    "variant": {"paper": Variant.paper, "published": Variant.published},
}


def read_settings(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a policy from plain values: `constants` and `variant` by preset, or by preset and what differs.

    >>> read_settings({"constants": {"preset": "published", "c0": 2.0}})["constants"].c0
    2.0
    """
    settings = dict(plain)
    for key, presets in PRESETS.items():
        if key in settings:
            settings[key] = _preset(key, presets, settings[key])
    if isinstance(settings.get("base_settings"), Mapping):
        settings["base_settings"] = read_settings(settings["base_settings"])
    return settings


def plain_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `read_settings`: constants and variants as mappings.

    >>> plain_settings({"variant": Variant.paper()})["variant"]["share"]
    0.5
    """
    return {
        key: dataclasses.asdict(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type)
        else plain_settings(value)
        if isinstance(value, Mapping)
        else value
        for key, value in settings.items()
    }


def _preset(key: str, presets: Mapping[str, Any], value: Any) -> Any:
    if isinstance(value, str):
        value = {"preset": value}
    if not isinstance(value, Mapping):
        raise InputError(f"{key} must be one of {', '.join(presets)}, or a mapping, got {value!r}")
    changed = dict(value)
    name = changed.pop("preset", next(iter(presets)))
    if name not in presets:
        raise InputError(f"{key} has no preset {name!r}; {did_you_mean(name, presets)}known: {', '.join(presets)}")
    base = presets[name]()
    known = ["preset", *(field.name for field in dataclasses.fields(base))]
    for field_name in changed:
        if field_name not in known:
            hint = did_you_mean(field_name, known)
            raise InputError(f"{key} has no setting {field_name!r}; {hint}known: {', '.join(known)}")
    return dataclasses.replace(base, **changed)


try:
    from pydantic import BaseModel, BeforeValidator, ValidationError
    from pydantic import ConfigDict as ConfigDict
    from pydantic import Field as Field
except ModuleNotFoundError:
    raise MissingExtraError("pydantic", extra="experiments", purpose="a configuration file") from None

# `ConfigDict` and `Field` are passed on: who extends a model then has the same message where pydantic is missing.

Settings = dict[str, Any]


class StrictModel(BaseModel):
    """A model that knows its keys, converts nothing, and does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


Model = TypeVar("Model", bound=StrictModel)


class EnvironmentConfig(StrictModel):
    """A world: its name and what differs from its defaults."""

    name: str = Field(description="A registered name (driftbandits list environments), or file.py:Class.")
    settings: Settings = Field(default={}, description="Settings of the world: horizon, size, noise, kernel, ...")


class PolicyConfig(StrictModel):
    """A policy: its name, what tables call it, and what differs from its defaults."""

    name: str = Field(description="A registered name (driftbandits list policies), or file.py:Class.")
    label: str | None = Field(
        default=None, min_length=1, description="Name in tables and figures; the class by default."
    )
    settings: Settings = Field(default={}, description="Settings of the policy; constants and variant may be presets.")
    kernel: Settings | None = Field(default=None, description="The kernel it is told instead of the world's own.")
    seeds: int | None = Field(default=None, ge=1, description="It plays only the first so many seeds.")


def _as_mapping(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


NamedEnvironment = Annotated[
    EnvironmentConfig, BeforeValidator(_as_mapping, json_schema_input_type=str | EnvironmentConfig)
]
NamedPolicy = Annotated[PolicyConfig, BeforeValidator(_as_mapping, json_schema_input_type=str | PolicyConfig)]


def validated(model: type[Model], file: ConfigFile) -> Model:
    """The model of a file's values. Raises InputError with the place of everything that is wrong."""
    try:
        return model.model_validate(file.values)
    except ValidationError as error:
        wrong = _not_explained(error.errors(include_url=False))
        lines = dict.fromkeys(f"{file.where(p['loc'])}: {_explain(p, model)}" for p in wrong)
        raise InputError("\n".join(lines)) from None


def _not_explained(problems: Sequence[Any]) -> list[Any]:
    """The problems, without missing keys where an unknown one stands beside them: a typo explains it."""
    typos = {p["loc"][:-1] for p in problems if p["type"] == "extra_forbidden"}
    return [p for p in problems if p["type"] != "missing" or p["loc"][:-1] not in typos]


def _explain(problem: Mapping[str, Any], model: type[BaseModel]) -> str:
    *parents, last = problem["loc"]
    if "seeds" in problem["loc"]:
        of_the_run = problem["loc"][0] == "seeds"  # those of one policy are the first so many of the run's
        place, listed = ("seeds", ", or a list of seeds from 0") if of_the_run else (_dotted(problem["loc"]), "")
        return f"{place} must be a whole number from 1{listed}, got {problem['input']!r}"
    path = _dotted(problem["loc"])
    match problem["type"]:
        case "extra_forbidden":
            valid = list(_model_at(model, parents).model_fields)
            inside = f" in {_dotted(parents)}" if parents else ""
            return f"there is no key {last!r}{inside}; {did_you_mean(last, valid)}valid: {', '.join(valid)}"
        case "missing":
            return f"{path} is missing"
        case "model_type":
            return f"{path} must be a name, or a mapping with 'name' and 'settings', got {problem['input']!r}"
        case _:
            return f"{path}: {problem['msg'][0].lower()}{problem['msg'][1:]}, got {problem['input']!r}"


def _model_at(model: type[BaseModel], parents: Sequence[str | int]) -> type[BaseModel]:
    """The model of the part at `parents`; numbers are places in a list, all of one model."""
    for step in parents:
        if isinstance(step, str) and step in model.model_fields:
            model = next(_models_in(model.model_fields[step].annotation), model)
    return model


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that an annotation such as `list[PolicyConfig]` names."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def _dotted(location: Sequence[str | int]) -> str:
    """policies[1].label"""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location).removeprefix(".")
