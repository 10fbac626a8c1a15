"""Names that a user gives to experiments and policies: tables show them, and folders are called by them."""

from __future__ import annotations

import re

from driftbandits.errors import InputError
from driftbandits.showing import breaking, shown

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
