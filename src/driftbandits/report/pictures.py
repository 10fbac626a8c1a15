"""Figures as files beside the page, and as images inside it."""

from __future__ import annotations

import io
import re
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import matplotlib
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from driftbandits._util.files import write_whole
from driftbandits.plots.frame import Key, columns_of

Panel = TypeVar("Panel")
Panel_contra = TypeVar("Panel_contra", contravariant=True)
SAMPLE_INCHES = 0.42  # of a line in a key
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
class KeyEntry:
    """One entry of the key of a figure: the address of its sample, and what it stands for."""

    sample: str
    label: str


@dataclass(frozen=True)
class Picture:
    """A figure of the page: images in a grid, one below the other on a phone; its one key, a caption, and its files."""

    images: tuple[Image, ...]
    key: tuple[KeyEntry, ...]
    caption: str
    files: str

    @property
    def columns(self) -> int:
        """How many images stand side by side where there is room."""
        return columns_of(len(self.images))


class Draw(Protocol[Panel_contra]):
    """What draws panels into a figure, with the legend below them or without."""

    def __call__(self, panels: Sequence[Panel_contra], /, *, legend: bool) -> Figure:
        """The figure."""


def make_picture(
    panels: Sequence[Panel],
    draw: Draw[Panel],
    describe: Callable[[Panel], str],
    *,
    key: Key,
    caption: str,
    folder: Path,
    name: str,
) -> Picture:
    """Draw the panels together into PNG and PDF files called `name`, and one by one into images of the page.

    The files have the key as their legend, the page has it as text that finds its place on any screen.
    """
    folder.mkdir(parents=True, exist_ok=True)
    together = draw(panels, legend=True)
    for kind, metadata in (("png", {}), ("pdf", {"CreationDate": None})):
        buffer = io.BytesIO()
        together.savefig(buffer, format=kind, metadata=metadata)
        write_whole(folder / f"{name}.{kind}", buffer.getvalue())
    images = tuple(_image(draw([panel], legend=False), describe(panel)) for panel in panels)
    entries = tuple(KeyEntry(_address(_sample(line)), label) for label, line in key.items())
    return Picture(images, entries, caption, f"{folder.name}/{name}.png and .pdf")


def _sample(line: Line2D) -> Figure:
    """A short piece of a line with one mark in its middle."""
    figure = Figure(figsize=(SAMPLE_INCHES, 0.14))
    piece = Line2D([0.06, 0.5, 0.94], [0.5, 0.5, 0.5], transform=figure.transFigure, markevery=[1])
    piece.update_from(line)
    piece.set_markevery([1])
    piece.set_transform(figure.transFigure)
    figure.add_artist(piece)
    figure.patch.set_visible(False)
    return figure


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
    return Image(_address(figure), round(96 * width), round(96 * height), alt)


def _address(figure: Figure) -> str:
    coded = urllib.parse.quote(svg(figure), safe=_PLAIN_IN_ADDRESSES)  # a third shorter than base64: paths stay
    return f"data:image/svg+xml;charset=utf-8,{coded}"
