"""Small files that would become large: refused before they are unpacked.

Where the library seals its files the bombs are sealed too: a seal shows damage, and not malice.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import json
import resource
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from attacks.common import (
    AttackRow,
    Hang,
    Options,
    arm_set,
    deadline,
    kind_of,
    make,
    play,
    said,
    scratch,
    spread,
    total,
)
from driftbandits.errors import StateError
from driftbandits.policies import GPUCB

BOMB_BYTES = 2_200 * 2**20  # when unpacked
EXTRA_ADDRESS_SPACE = 4 * 2**30  # bytes beyond what the process has
MOST_BYTES_READ = 1_200 * 2**20  # a state of a gigabyte may be genuine
HANG_SECONDS = 120.0
SEALS: Any = importlib.import_module("driftbandits._util.files")
Bomb = Callable[[Path, dict[str, Any], int], None]


def run(options: Options) -> Iterator[AttackRow]:
    """Each kind once."""
    size = 1_500 * 2**20 if options.quick else BOMB_BYTES
    yield total("file that becomes large", spread(explode, [(name, size) for name in BOMBS], options))


def explode(name: str, size: int) -> AttackRow:
    """Write the bomb, and load it with limited memory."""
    row = AttackRow(name)
    with scratch(disk=True) as folder:
        path = folder / "policy"
        policy = make("GPUCB")
        play(policy, 30)
        policy.save(path)
        with zipfile.ZipFile(path) as archive:
            parts = {entry: archive.read(entry) for entry in archive.namelist()}
        BOMBS[name](path, parts, size)
        _seal(path)
        row.details["bytes of the file"] = path.stat().st_size
        resource.setrlimit(
            resource.RLIMIT_AS, (_used("VmSize") + EXTRA_ADDRESS_SPACE, resource.getrlimit(resource.RLIMIT_AS)[1])
        )
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
        before = _used("VmHWM")
        try:
            with deadline(HANG_SECONDS):
                GPUCB.load(arm_set(), path)
            outcome, error = "loaded", ""
        except StateError as refused:
            outcome, error = "StateError", said(refused)
        except (Exception, Hang) as other:
            outcome, error = f"raised {kind_of(other)}", said(other)
        peak = _used("VmHWM") - before
    row.details["peak MB"] = round(peak / 2**20)
    row.add(outcome, bad=outcome != "StateError", example=f"{name}, {peak / 2**20:.0f} MB more: {error}")
    row.note(
        "memory bounded" if peak < MOST_BYTES_READ else "memory not bounded", bad=peak >= MOST_BYTES_READ, example=name
    )
    return row


def _used(what: str) -> int:
    """Bytes of memory from the kernel's books."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what + ":"))


def _zeros(file: Any, size: int) -> None:
    block = bytes(2**24)
    for _ in range(size // len(block)):
        file.write(block)


def _header(shape: tuple[int, ...]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def _write(path: Path, parts: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", compression=zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def _seal(path: Path) -> None:
    if SEALS is not None:
        with zipfile.ZipFile(path, "a") as archive:
            archive.comment = SEALS.BLANK_SEAL.encode()
        path.write_bytes(SEALS.sealed(path.read_bytes()))


def _large_array(path: Path, parts: dict[str, bytes], size: int) -> None:
    last = max((name for name in parts if name != "state.json"), key=lambda name: int(name.removesuffix(".npy")))
    _write(path, {name: content for name, content in parts.items() if name != last})
    with (
        zipfile.ZipFile(path, "a", compression=zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open(last, "w", force_zip64=True) as file,
    ):
        whole = size // 2**24 * 2**24
        file.write(_header((whole // 8,)))
        _zeros(file, whole)


def _lying(path: Path, parts: dict[str, bytes], size: int) -> None:
    """The directory says 200 bytes, the stream holds all."""
    _large_array(path, parts, size)
    content = bytearray(path.read_bytes())
    where = content.rfind(b"PK\x01\x02")  # the last entry, which is the array
    content[where + 24 : where + 28] = struct.pack("<I", 200)
    path.write_bytes(content)


def _references(path: Path, parts: dict[str, bytes], size: int) -> None:
    """One array of moderate size, referred to 300 times."""
    each = size // 300 // 8
    state = json.loads(parts["state.json"])
    state["engine"] = [{"@array": 0}] * 300
    array = io.BytesIO()
    np.lib.format.write_array(array, np.zeros(each))
    _write(path, {**parts, "state.json": json.dumps(state).encode(), "0.npy": array.getvalue()})


def _declared(path: Path, parts: dict[str, bytes], size: int) -> None:
    """An array of a terabyte by its header, with nothing behind it."""
    del size
    _write(path, {**parts, "0.npy": _header((2**37,)) + bytes(64)})


def _long_text(path: Path, parts: dict[str, bytes], size: int) -> None:
    """Blanks before the end of the text."""
    with zipfile.ZipFile(path, "w", compression=zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("state.json", "w", force_zip64=True) as file:
            file.write(parts["state.json"][:-1])
            for _ in range(size // 2**24):
                file.write(b" " * 2**24)
            file.write(b"}")
        for name in [name for name in parts if name != "state.json"]:
            archive.writestr(name, parts[name])


def _nested(path: Path, parts: dict[str, bytes], size: int) -> None:
    """Lists in lists, a million deep."""
    del size
    _write(path, {**parts, "state.json": b"[" * 10**6 + b"]" * 10**6})


BOMBS: dict[str, Bomb] = {
    "an array of zeros": _large_array,
    "a size that lies": _lying,
    "300 references to one array": _references,
    "an array of a terabyte": _declared,
    "a text of blanks": _long_text,
    "lists a million deep": _nested,
}
