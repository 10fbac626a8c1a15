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

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from driftbandits.policies.auto.exposures import Exposures
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


def open_decisions(seed=0):
    """Delay against lag: sales of one offer that takes the place of another at hour 0, a thousand visits an hour.

    The exposures are those of AutoBandit; delays are log-uniform between 10 minutes and 24 hours.
    """
    rng, patience, hours, rate = np.random.default_rng(seed), 24.0, np.arange(-72.0, 36.0, 0.25), 0.04
    asked = np.repeat(hours, 250)
    delay = np.where(
        rng.random(len(asked)) < rate, np.exp(rng.uniform(np.log(1 / 6), np.log(24.0), len(asked))), np.inf
    )
    told = asked + delay
    exposures, plays, sales, came = Exposures(2), np.zeros(2), [], np.argsort(told)
    exposures.begin(now=0.0, patience=patience, first_id=0)
    first, found = 0, {"counts by its age": [], "waits 24 hours": [], "counts as a failure": []}
    for now in hours:
        clock, arm = now - hours[0], int(now >= 0.0)
        exposures.at(clock, patience)
        exposures.play([arm] * 250, first, clock)
        first += 250
        due = came[(told[came] > now - 0.25) & (told[came] <= now)]
        for ident in due.tolist():
            exposures.tell(ident, int(asked[ident] >= 0.0), 1.0, clock)
            sales.append(ident)
        grown = exposures.collect(clock, plays)
        plays[grown.arms] += grown.exposure
        new = (asked >= 0.0) & (asked <= now)
        old_enough = new & (asked <= now - patience)
        mine = np.count_nonzero(asked[sales] >= 0.0)
        found["counts by its age"].append(mine / max(plays[1], 1e-9))
        found["counts as a failure"].append(mine / max(np.count_nonzero(new), 1))
        in_time = np.count_nonzero(told[old_enough] < np.inf)
        found["waits 24 hours"].append(in_time / np.count_nonzero(old_enough) if old_enough.any() else np.nan)
    colours = dict(zip(found, ("#0b6e4f", "#b45309", "#7c3aed"), strict=True))
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12.0, 3.6), dpi=100, layout="constrained")
    age = np.linspace(0.0, 30.0, 400)
    true = np.clip(np.log(np.maximum(age, 1e-9) * 6.0) / np.log(144.0), 0.0, 1.0)
    left.plot(age, true, color="#9aa5b1", linewidth=5, label="true")
    left.plot(age, exposures.share(age), color="black", linewidth=1.5, label="estimated")
    left.set(title="Delay: share F(u) of sales\nthat have come by age u", xlabel="age u of a decision (hours)")
    middle.plot(age, exposures.share(age), color=colours["counts by its age"], label="counts by its age: F(u)")
    middle.step(age, age >= patience, color=colours["waits 24 hours"], label="waits 24 hours")
    middle.plot(age, np.ones_like(age), color=colours["counts as a failure"], label="counts as a failure")
    middle.set(title="What a decision without a sale\ncounts as, in failures", xlabel="age u of a decision (hours)")
    shown = hours >= 0.5
    for name, values in found.items():
        right.plot(hours[shown], 100.0 * np.array(values)[shown], color=colours[name], label=name)
    right.axhline(100.0 * rate, color="black", linestyle=":", label="true")
    right.set(title="Lag: what is believed of a new offer\nafter so many hours", xlabel="hours since it is offered")
    right.set(ylim=(0.0, 6.0), ylabel="sales per 100 visits")
    for axes in (left, middle, right):
        axes.legend(fontsize=8, loc="center right" if axes is middle else "lower right")
        axes.spines[["top", "right"]].set_visible(False)
    shot = io.BytesIO()
    figure.savefig(shot)
    save(shot.getvalue(), HERE / "open-decisions.png")


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
    open_decisions()
    with tempfile.TemporaryDirectory() as place, browser() as tab:
        beliefs(Path(place))
        service(tab, Path(place))
        advice(tab, Path(place))
