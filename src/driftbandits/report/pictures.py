"""Figures as files beside the page, and as images inside it."""

from __future__ import annotations

import io
import re
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import matplotlib
from matplotlib.figure import Figure

from driftbandits.files import write_whole

Panel = TypeVar("Panel")

LONGEST_FILE_NAME = 200  # letters, without the suffix

_NEEDLESS = re.compile(r"<metadata>.*?</metadata>|<!DOCTYPE.*?>|<\?xml.*?\?>|<!--.*?-->", re.DOTALL)
_PATH = re.compile(r'(?<= d=")[^"]*')
_NUMBER = re.compile(r"-?\d+\.\d+")
_GAP = re.compile(r"\s*([A-Za-z])\s*")
_PLAIN_IN_ADDRESSES = "/:;,=()+*!-._~@$&"  # the template escapes what HTML wants escaped


@dataclass(frozen=True)
class Image:
    """An image inside the page: its address (which holds all of it), its size in CSS pixels, and what it shows."""

    address: str
    width: int
    height: int
    alt: str


@dataclass(frozen=True)
class Picture:
    """A figure of the page: images that stand side by side where there is room, a caption, and the files it is in."""

    images: tuple[Image, ...]
    caption: str
    files: str


def make_picture(
    panels: Sequence[Panel],
    draw: Callable[[Sequence[Panel]], Figure],
    describe: Callable[[Panel], str],
    *,
    caption: str,
    folder: Path,
    name: str,
) -> Picture:
    """Draw the panels together into PNG and PDF files called `name`, and one by one into images of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    together = draw(panels)
    for kind, metadata in (("png", {}), ("pdf", {"CreationDate": None})):
        buffer = io.BytesIO()
        together.savefig(buffer, format=kind, metadata=metadata)
        write_whole(folder / f"{name}.{kind}", buffer.getvalue())
    images = tuple(_image(draw([panel]), describe(panel)) for panel in panels)
    return Picture(images, caption, f"{folder.name}/{name}.png and .pdf")


def file_name(experiment: str) -> str:
    """An id as the name of a file or an anchor: letters, digits and hyphens, no longer than file systems allow.

    >>> file_name("switching/1/d3"), file_name("Mine & <b>yours</b>")
    ('switching-1-d3', 'mine-b-yours-b')
    """
    return re.sub(r"[^a-z0-9.]+", "-", experiment.lower()).strip("-.")[:LONGEST_FILE_NAME] or "experiment"


def svg(figure: Figure) -> str:
    """The figure as SVG: the same on every machine, letters as shapes, no finer than a twentieth of a point."""
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "driftbandits"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = _NEEDLESS.sub("", buffer.getvalue())
    text = _PATH.sub(lambda path: _short_path(path.group()), text)
    return " ".join(text.split())


def _short_path(path: str) -> str:
    """The same path in fewer letters.

    >>> _short_path("M 10.04999 20.0 \\nL 3.26 4 z")
    'M10,20L3.3,4z'
    """
    rounded = _NUMBER.sub(lambda number: f"{float(number.group()):.1f}".removesuffix(".0"), path)
    return ",".join(_GAP.sub(r"\1", rounded).split())


def _image(figure: Figure, alt: str) -> Image:
    width, height = figure.get_size_inches()
    coded = urllib.parse.quote(
        svg(figure), safe=_PLAIN_IN_ADDRESSES
    )  # a third shorter than base64: paths stay as they are
    return Image(f"data:image/svg+xml;charset=utf-8,{coded}", round(96 * width), round(96 * height), alt)
