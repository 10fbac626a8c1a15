"""Models of configuration: strict, frozen, and with errors that name the place and the nearest valid key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeVar, get_args

from driftbandits.configuration.files import ConfigFile
from driftbandits.errors import InputError, MissingExtraError, did_you_mean

try:
    from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
except ModuleNotFoundError:
    raise MissingExtraError("pydantic", extra="experiments", purpose="a configuration file") from None

# `ConfigDict` and `Field` are passed on: who extends a model then has the same message where pydantic is missing.
__all__ = [
    "ConfigDict",
    "EnvironmentConfig",
    "Field",
    "NamedEnvironment",
    "NamedPolicy",
    "PolicyConfig",
    "Settings",
    "StrictModel",
    "validated",
]

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
