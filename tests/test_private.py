"""No file reads a private attribute of an object that another file describes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "driftbandits"
# The hooks and facts of policies, by which a policy drives another of its kind, as MASTER does its bases.
OF_POLICIES = ("algorithm", "base", "inspection", "persistence", "optimistic", "window", "gp/gpucb")
OF_OTHERS = {("_util/guard.py", "_is_owned")}  # of `threading.RLock`, where it has no public name


def described(text: str) -> set[str]:
    """Private names that this file defines: functions, methods, and what is assigned to `self` or in a class."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found |= {node.attr} if isinstance(node.value, ast.Name) and node.value.id == "self" else set()
        elif isinstance(node, ast.ClassDef):
            found |= {
                one.target.id
                for one in node.body
                if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
            }
    return found


def read_of_others(tree: ast.AST) -> set[str]:
    """Private names read of anything but `self`, `cls`, `super()` and modules' own."""
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "os"))
        and not (isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") == "super")
    } - {"_replace", "_make", "_asdict", "_fields"}  # of named tuples, public in spite of their names


def test_no_file_reads_what_is_private_to_another():
    policies = set().union(*(described((PACKAGE / "policies" / f"{name}.py").read_text()) for name in OF_POLICIES))
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text, place = path.read_text(), path.relative_to(PACKAGE).as_posix()
        allowed = described(text) | (policies if place.startswith("policies/") else set())
        wrong += [
            (place, name)
            for name in sorted(read_of_others(ast.parse(text)) - allowed)
            if (place, name) not in OF_OTHERS
        ]
    assert not wrong


@pytest.mark.parametrize(
    ("line", "expected"), [("other._kept", {"_kept"}), ("self._kept", set()), ("row._replace", set())]
)
def test_what_counts_as_reading(line, expected):
    assert read_of_others(ast.parse(line)) == expected
