"""Pictures of the documentation, drawn again: `python -m docs.figures`, two minutes; the screenshots need Chromium.

The front page's picture comes from `examples/the_point.py`, that of beliefs from the guide that shows it. The page of
the service is what `examples/day_in_the_life.py` leaves, that of the advice what `examples/log_advice.py` writes; both
are cut where the next section begins, and saved with few colours, so that they stay small. Figures of comparisons come
from the experiments on whose pages they stand.
"""

import importlib.util
import io
import json
import os
import runpy
import sys
import tempfile
from pathlib import Path

from PIL import Image

from driftbandits.service.background import serving
from tests.pages import blocks_of
from tests.service.browser import browser

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples"
COLOURS = 256


def example(name):
    """A file of examples/ as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def the_point():
    """What the front page shows."""
    sys.argv = ["the_point.py", str(HERE / "the-point.png")]
    runpy.run_path(str(EXAMPLES / "the_point.py"), run_name="__main__")


def beliefs(folder):
    """The figure that the guide's own code saves."""
    code = [block.text for block in blocks_of(HERE.parent / "guides" / "looking.md") if block.label == "python"]
    os.chdir(folder)
    exec("\n".join(code), {})
    save((folder / "beliefs.png").read_bytes(), HERE / "beliefs.png")


def save(shot, path, height=10_000):
    """Cut a picture off below, and keep few colours."""
    whole = Image.open(io.BytesIO(shot)).convert("RGB")
    cut = whole.crop((0, 0, whole.width, min(height, whole.height)))
    cut.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}: {cut.width} x {cut.height}, {path.stat().st_size:,} bytes")


def top_of(page, selector):
    """Where on the page something begins, in pixels."""
    place = f"document.querySelector({json.dumps(selector)}).getBoundingClientRect()"
    return int(page.evaluate(f"{place}.top + window.scrollY"))


def shot_of(page, folder):
    """The whole page as PNG."""
    path = folder / "shot.png"
    page.screenshot(path)
    return path.read_bytes()


def service(page, folder):
    """The page of an experiment at the end of its day."""
    day = example("day_in_the_life")
    url = f"sqlite:///{folder}/day.db"
    day.live_a_day(url, day.READERS)
    with serving(database=url, clock=lambda: round(1e6 * (day.MIDNIGHT + 24 * day.HOUR))) as where:
        page.open(f"{where}/experiments/headlines", width=1000)
        save(shot_of(page, folder), HERE / "service-page.png", top_of(page, "section:has(#played)"))


def advice(page, folder):
    """The first answer of the advice on a log with one change."""
    example("log_advice").main(folder)
    page.send("Emulation.setDeviceMetricsOverride", width=900, height=900, deviceScaleFactor=1, mobile=False)
    page.send("Page.navigate", url=(folder / "advice.html").as_uri())
    page.wait("document.readyState === 'complete' && document.querySelectorAll('h2').length > 1")
    save(shot_of(page, folder), HERE / "advice-page.png", top_of(page, "section:nth-of-type(2)"))


if __name__ == "__main__":
    the_point()
    with tempfile.TemporaryDirectory() as place, browser() as tab:
        beliefs(Path(place))
        service(tab, Path(place))
        advice(tab, Path(place))
