"""The documentation site, as far as it can be tested without building it; `make docs` builds it."""

import ast
import dataclasses
import doctest
import enum
import importlib
import inspect
import re
import sys
import textwrap
import types
from pathlib import Path

import pytest

from driftbandits._util.checks import check_count

DOCS = Path(__file__).parent.parent / "docs"
sys.path.insert(0, str(DOCS / "_ext"))

import check_links  # noqa: E402
import house_docstrings  # noqa: E402

ROOMS = ["environments", "detection", "errors", "experiments", "live", "logs", "plots", "testing", "datasets"]


def listed():
    """Every name that the reference lists, with the room it is listed in."""
    found = set()
    for page in (DOCS / "reference").glob("*.rst"):
        room, inside = "", False
        for line in page.read_text().splitlines():
            inside = (inside or line == ".. autosummary::") and (not line or line.startswith((" ", ".. autosummary")))
            if line.startswith(".. currentmodule:: "):
                room = line.split()[-1]
            elif data := re.fullmatch(r"\.\. py:data:: (\w+)", line):
                found.add((room, data[1]))
            elif inside and re.fullmatch(r"   \w+", line):
                found.add((room, line.strip()))
    return found


def public_names(module):
    """Those it says are public, or else those that are defined in it."""
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return getattr(module, "__all__", [name for name in own if not name.startswith("_")])


@pytest.mark.parametrize("room", ["", *ROOMS])
def test_the_reference_has_every_public_name(room):
    module = importlib.import_module(".".join(["driftbandits", *room.split()]))
    entries = listed()
    objects = [getattr(importlib.import_module(place), name) for place, name in entries]
    for name in public_names(module):
        value = getattr(module, name)
        if isinstance(value, types.ModuleType):
            assert name in ROOMS, f"{name} is a new room: give it a page in docs/reference, and name it in ROOMS"
        elif isinstance(value, type | types.FunctionType):
            assert any(value is other for other in objects), f"{name} is not in docs/reference"
        else:
            assert (module.__name__, name) in entries, f"{name} is not in docs/reference"


def test_the_reference_lists_only_what_exists():
    assert len(listed()) > 150
    for place, name in listed():
        assert hasattr(importlib.import_module(place), name), f"docs/reference lists {place}.{name}"


def test_every_page_of_the_reference_is_in_its_index():
    pages = {page.stem for page in (DOCS / "reference").glob("*.rst")} - {"index"}
    index = (DOCS / "reference" / "index.rst").read_text()
    assert set(re.findall(r":doc:`([\w-]+)`", index)) == set(index.split(":hidden:")[1].split()) == pages


def test_pages_of_the_reference_name_templates_that_exist():
    text = "".join(page.read_text() for page in (DOCS / "reference").glob("*.rst"))
    names = re.findall(r":template: (.*)", text)
    assert names
    assert all((DOCS / "_templates" / name).exists() for name in names)  # Sphinx would take another one silently


DOCSTRING = """What it does, with |x| in it.

    f(x) = |x|

Parameters
----------
size : how many,
    at most ten
points : array, shape (N, d)
    One row per arm.

It says more after the list.

>>> 1 + 1
2
"""


def test_docstrings_become_what_numpydoc_reads():
    text = "\n".join(house_docstrings.rewritten(DOCSTRING.splitlines()))
    assert r"with \|x\| in it." in text
    assert "::\n\n    f(x) = |x|\n" in text
    assert "size\n    how many,\n    at most ten\npoints : array, shape (N, d)\n    One row per arm.\n" in text
    assert "Notes\n-----\nIt says more after the list.\n" in text
    assert text.endswith("Examples\n--------\n>>> 1 + 1\n2\n\n")


def test_attributes_without_a_heading_get_one():
    lines = ["A record.", "", "low : the lower end", "high : the upper end,", "    or infinity"]
    words = ["low", "    the lower end", "high", "    the upper end,", "    or infinity", ""]
    assert house_docstrings.rewritten(lines)[-6:] == words
    assert house_docstrings.attributes_named([":Other Parameters:", "..."]) == [":Attributes:", "..."]


def test_broken_links_are_found(tmp_path):
    (tmp_path / "b.html").write_text('<h1 id="top">B</h1>')
    links = ["b.html", "b.html#top", "#here", "https://example.org/x", "c.html", "b.html#bottom", "#there"]
    (tmp_path / "a.html").write_text('<p id="here">' + "".join(f'<a href="{link}">x</a>' for link in links))
    assert check_links.broken_links(tmp_path) == ["a.html: c.html", "a.html: b.html#bottom", "a.html: #there"]


def is_protocol(value):
    """Whether a class is a protocol itself, and not one that follows it."""
    return getattr(value, "_is_protocol", False)


def documented():
    """Public functions and classes whose docstrings must be whole, but for errors and what nobody calls."""
    for place, name in sorted(listed()):
        value = getattr(importlib.import_module(place), name)
        called = isinstance(value, types.FunctionType) or (
            isinstance(value, type) and not issubclass(value, Exception | enum.Enum) and not is_protocol(value)
        )
        if called:
            yield pytest.param(value, id=f"{place}.{name}")


def named_parameters(docstring):
    """The names that the list of parameters has."""
    text = "\n".join(house_docstrings.rewritten(docstring.splitlines()))
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", text, flags=re.DOTALL | re.MULTILINE)
    lines = section[1].splitlines() if section else []
    return {name.strip() for line in lines if line[:1].strip() for name in line.partition(" : ")[0].split(",")}


def refuses(function):
    """Whether its own code raises an error, or calls one of the checks that do."""
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))):
        if isinstance(node, ast.Raise) and node.exc is not None:
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith("check_"):
            return True
    return False


def built_by(value):
    """The functions of its own that run when a class or a function is called."""
    if isinstance(value, types.FunctionType):
        return [value]
    written = [] if dataclasses.is_dataclass(value) else ["__init__"]  # that of a data class has no source
    return [vars(value)[name] for name in (*written, "__post_init__") if name in vars(value)]


@pytest.mark.parametrize("value", list(documented()))
def test_docstrings_have_parameters_returns_errors_and_an_example(value):
    docstring = inspect.getdoc(value)
    signature = inspect.signature(value)
    missing = set(signature.parameters) - named_parameters(docstring)
    assert not missing, f"the docstring does not say what {', '.join(sorted(missing))} is"
    assert ">>>" in docstring, "the docstring has no example"
    if isinstance(value, types.FunctionType):
        assert "Returns\n-------" in docstring, "the docstring does not say what it returns"
    if any(map(refuses, built_by(value))):
        assert "Raises\n------" in docstring, "the docstring does not say what it raises"


def methods():
    """Public methods of public classes, each with the docstrings of those it takes the place of."""
    found = {}
    for value in {param.values[0] for param in documented() if isinstance(param.values[0], type)}:
        for name in dir(value):
            method = inspect.getattr_static(value, name)
            method = method.__func__ if isinstance(method, classmethod | staticmethod) else method
            if isinstance(method, types.FunctionType) and not name.startswith("_"):
                bases = [getattr(base, name) for base in value.__mro__ if name in vars(base)]
                found[method] = "\n".join(inspect.getdoc(base) or "" for base in bases)
    for method, text in sorted(found.items(), key=lambda item: (item[0].__module__, item[0].__qualname__)):
        if method.__module__.startswith("driftbandits"):
            yield pytest.param(method, text, id=f"{method.__module__}.{method.__qualname__}")


@pytest.mark.parametrize(("method", "docstring"), list(methods()))
def test_docstrings_of_methods_have_parameters_returns_and_errors(method, docstring):
    signature = inspect.signature(inspect.unwrap(method))
    missing = set(signature.parameters) - {"self", "cls"} - named_parameters(docstring)
    assert not missing, f"the docstring does not say what {', '.join(sorted(missing))} is"
    if signature.return_annotation != "None":
        assert re.search("^(Returns|Yields)\n--", docstring, flags=re.MULTILINE), "it does not say what it returns"
    if refuses(method):
        assert "Raises\n------" in docstring, "the docstring does not say what it raises"


def test_a_check_in_the_code_is_noticed():
    def checked(number):
        check_count("number", number)

    def raised(number):
        raise ValueError(number)

    def handed_on(number):
        return number

    assert refuses(checked)
    assert refuses(raised)
    assert not refuses(handed_on)


def test_examples_of_docstrings_are_run():
    """Those of methods too: pytest finds what doctest finds."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    module = importlib.import_module("driftbandits.policies.base")
    found = {test.name for test in finder.find(module) if test.examples}
    assert {"driftbandits.policies.base.Policy", "driftbandits.policies.base.Policy.ask"} <= found
