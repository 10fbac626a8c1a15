"""The OpenAPI document: paths with their bodies, answers and errors, made from the classes in `bodies`."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from driftbandits.service import bodies
from driftbandits.version import __version__

_REF = "#/components/schemas/{model}"
_ALWAYS = (401, 403, 422)
_CHANGES = (400, 408, 413, 415)
_NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1, "maxLength": 200}}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same key and body get the stored answer; another body 422; in flight 409.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
}


def parameter(name: str, *, least: int, most: int) -> dict[str, Any]:
    """A whole number in the query."""
    schema = {"type": "integer", "minimum": least, "maximum": most}
    return {"name": name, "in": "query", "required": False, "schema": schema}


def described(
    text: str,
    *,
    body: type[BaseModel] | tuple[type[BaseModel], ...] | None = None,
    answer: type[BaseModel] | None = None,
    status: int = 200,
    media: str = "application/json",
    errors: tuple[int, ...] = (),
    named: bool = True,
    parameters: tuple[dict[str, Any], ...] = (),
) -> dict[str, Any]:
    """What FastAPI is told of a path."""
    changes = body is not None
    known = sorted({*_ALWAYS, *errors, *(_CHANGES if changes else ()), *((404, 503) if named else (503,))})
    extra: dict[str, Any] = {"parameters": [*([_NAME] if named else []), *([_KEY] if changes else []), *parameters]}
    if body is not None:
        kinds = body if isinstance(body, tuple) else (body,)
        schemas = [{"$ref": _REF.format(model=kind.__name__)} for kind in kinds]
        schema = schemas[0] if len(schemas) == 1 else {"oneOf": schemas}
        extra["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    shown = {"$ref": _REF.format(model=answer.__name__)} if answer else {}
    responses: dict[int | str, Any] = {status: {"description": "Done", "content": {media: {"schema": shown}}}}
    problem = {"schema": {"$ref": _REF.format(model="ProblemBody")}}
    for code in known:
        responses[code] = {"description": "A problem", "content": {"application/problem+json": problem}}
    return {"summary": text, "status_code": status, "responses": responses, "openapi_extra": extra}


def document(paths: dict[str, Any]) -> dict[str, Any]:
    """The whole document."""
    models = [kind for kind in vars(bodies).values() if isinstance(kind, type) and issubclass(kind, BaseModel)]
    kinds = [(kind, "validation") for kind in models if kind not in (BaseModel, bodies.Body)]
    _, schemas = models_json_schema(kinds, ref_template=_REF)  # type: ignore[arg-type]
    return {
        "openapi": "3.1.0",
        "info": {"title": "driftbandits", "version": __version__, "summary": "Bandit experiments over HTTP"},
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}],
    }
