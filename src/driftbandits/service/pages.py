"""The page: a list of experiments, one page for each, and a login. Its data come from the same paths as everyone's."""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from driftbandits.service.handlers import answer_error
from driftbandits.service.hosting import Service
from driftbandits.service.keys import COOKIE, SESSION_SECONDS, Caller, begin_session, cookie_of, end_session
from driftbandits.service.problems import Problem
from driftbandits.service.requests import read_bytes
from driftbandits.version import __version__

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",  # Plotly sets styles of its elements
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
STATIC = {"page.js": "text/javascript", "page.css": "text/css", "plotly.min.js": "text/javascript"}


def add_pages(app: FastAPI) -> None:
    """Paths for people."""
    for path, handler, method in (
        ("/", _list, "GET"),
        ("/experiments/{name}", _one, "GET"),
        ("/login", _login, "GET"),
        ("/login", _log_in, "POST"),
        ("/logout", _log_out, "POST"),
        ("/static/{file}", _static, "GET"),
    ):
        app.add_api_route(path, handler, methods=[method], include_in_schema=False)


@cache
def _templates() -> jinja2.Environment:
    folder = resources.files("driftbandits.service") / "templates"
    loader = jinja2.FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8"))
    return jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)


def _page(template: str, status: int = 200, **values: Any) -> Response:
    text = _templates().get_template(template).render(version=__version__, quote=lambda s: quote(s, safe=""), **values)
    return Response(text, status, {"content-security-policy": POLICY, "x-frame-options": "DENY"}, "text/html")


def _admit(request: Request) -> Caller:
    service: Service = request.app.state.service
    caller = service.gate.admit(dict(request.headers), request.client.host if request.client else None)
    if not caller.may("read"):
        raise Problem(403, "scope", "the page needs a key of scope read or admin")
    return caller


async def _shown(request: Request, template: str, **values: Any) -> Response:
    try:
        caller = _admit(request)
    except Problem as problem:
        if problem.status == 401 and request.app.state.service.keyring.exists:
            return RedirectResponse("/login", 303)
        return _page("refused.html", problem.status, detail=problem.detail)
    service: Service = request.app.state.service
    token = service.gate.token(caller)
    return _page(template, token=token, admin=caller.may("admin"), keyed=bool(caller.key_id), **values)


async def _list(request: Request) -> Response:
    return await _shown(request, "list.html")


async def _one(request: Request) -> Response:
    service: Service = request.app.state.service
    name = request.path_params["name"]
    try:
        _admit(request)
        await service.in_thread(service.database.view, name)
    except Problem:
        pass  # `_shown` says it
    except Exception as error:  # noqa: BLE001  # an unknown name, or the database is away
        found = answer_error(error, request)
        return _page("refused.html", found.status_code, detail=str(error))
    return await _shown(request, "one.html", name=name)


async def _login(request: Request) -> Response:
    service: Service = request.app.state.service
    return _page("login.html", wrong=False) if service.keyring.exists else RedirectResponse("/", 303)


async def _log_in(request: Request) -> Response:
    """A form with a key: the only request that is not JSON, and it only sets a cookie."""
    service: Service = request.app.state.service
    try:
        service.gate.check_origin(dict(request.headers))
        key = _form_key(await read_bytes(request, 10_000))
        row = service.keyring.find(key)
        if row is None or row.scope == "decide":
            return _page("login.html", 401, wrong=True)
        session = await service.in_thread(begin_session, service.database, row)
        await service.in_thread(service.keyring.reread)
    except Exception as error:  # noqa: BLE001  # said as everywhere
        return answer_error(error, request)
    answer = RedirectResponse("/", 303)
    secure = service.gate.secure
    answer.set_cookie(
        COOKIE, session, max_age=SESSION_SECONDS, httponly=True, samesite="strict", secure=secure, path="/"
    )
    return answer


def _form_key(body: bytes) -> str:
    from urllib.parse import parse_qs

    return parse_qs(body.decode("latin-1")).get("key", [""])[0].strip()


async def _log_out(request: Request) -> Response:
    service: Service = request.app.state.service
    try:
        headers = dict(request.headers)
        service.gate.check_origin(headers)
        await service.in_thread(end_session, service.database, cookie_of(headers))
        await service.in_thread(service.keyring.reread)
    except Exception as error:  # noqa: BLE001  # said as everywhere
        return answer_error(error, request)
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer


# --- files ------------------------------------------------------------------------------------------------------------


async def _static(request: Request) -> Response:
    """One of three files, by name: no path from a client reaches the disk."""
    file = request.path_params["file"]
    if file not in STATIC:
        return answer_error(Problem(404, "not-found", "there is no such file"), request)
    packed, tag = await request.app.state.service.in_thread(_file, file)
    headers = {"etag": tag, "cache-control": "max-age=3600", "vary": "accept-encoding"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(packed, headers={**headers, "content-encoding": "gzip"}, media_type=STATIC[file])
    return Response(gzip.decompress(packed), headers=headers, media_type=STATIC[file])


@cache
def _file(name: str) -> tuple[bytes, str]:
    """A file packed, and its tag."""
    if name == "plotly.min.js":
        import plotly

        content = (Path(plotly.__file__).parent / "package_data" / name).read_bytes()
    else:
        content = (resources.files("driftbandits.service") / "static" / name).read_bytes()
    return gzip.compress(content, 6), f'"{hashlib.sha256(content).hexdigest()[:16]}"'
