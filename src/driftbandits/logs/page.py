"""The advice as one HTML page with its figures, computed first and drawn second; and the files beside it."""

from __future__ import annotations

import io
import math
import os
import textwrap
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from driftbandits._util.checks import check_path
from driftbandits._util.files import write_whole
from driftbandits._util.intervals import share_interval
from driftbandits.environments import Tabular
from driftbandits.errors import InputError, MissingExtraError
from driftbandits.logs.advising import Advice
from driftbandits.logs.estimators import local_variance
from driftbandits.logs.log import Log, arms_of, cell_arms, is_masked
from driftbandits.logs.twins import SharesOfSuccesses, sample_world
from driftbandits.logs.variation import CHANCES
from driftbandits.text import counted
from driftbandits.types import Floats
from driftbandits.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Does this world move, and does adapting pay?"
_TWINS_WRITTEN = 3
_CHANGES_SHOWN = 4
_POINTS = 60
MOST_ARMS = 8
_COLOURS = ("#EE3377", "#0077BB", "#009988", "#EE7733", "#33BBEE", "#CC3311", "#332288", "#999933")
WIDE, NARROW = 9.4, 4.0  # inches: of a page, and of a telephone
_HIGH = 2.9
_MARGIN = 0.05  # of the range of rewards, which bands of the model may leave
_NAME_LETTERS = 16  # of a line of a player's name, on narrow screens


_WORLD = '''"""Worlds sampled from what a log says, made by `driftbandits advise`; a seed chooses one of them."""

from pathlib import Path

import numpy as np

import driftbandits as db


def twin(seed: int = 0) -> db.environments.Tabular:
    """One of the worlds."""
    kept = np.load(Path(__file__).with_name({numbers!r}))
    arms = db.ArmSet.from_features(kept["features"], points=kept["points"], names=kept["names"].tolist())
    if len(kept["segments"]):
        arms = db.ArmSet.crossed(arms, kept["segments"].tolist())
    means = kept["means"][seed % len(kept["means"])].astype(float)
    mask = ~np.isnan(means)
    noise = {noise}
    return db.environments.Tabular(arms, means, noise=noise, allowed=None if mask.all() else mask, name="twin")
'''


@dataclass(frozen=True)
class Course:
    """A value over time with a band: `clock`, `value`, `low`, `high`, each (points,)."""

    clock: Floats
    value: Floats
    low: Floats
    high: Floats


def reward_course(log: Log) -> Course:
    """Mean reward of the policy that logged in up to 60 stretches of rows, with 95 % intervals."""
    number = max(min(_POINTS, len(log) // 20), 1)
    ends = np.linspace(0, len(log), number + 1).astype(int)
    parts = [slice(ends[k], ends[k + 1]) for k in range(number)]
    value = np.array([log.reward[part].mean() for part in parts])
    clock = np.array([log.clock[part].mean() for part in parts])
    low, high = float(log.reward.min()), float(log.reward.max())
    if (
        low < high and np.isin(log.reward, (low, high)).all()
    ):  # shares of successes: no band beyond them, none of width 0
        shares = [share_interval(int((log.reward[p] == high).sum()), p.stop - p.start) for p in parts]
        below, above = (np.array([getattr(share, end) for share in shares]) for end in ("low", "high"))
        return Course(clock, value, low + (high - low) * below, low + (high - low) * above)
    half = np.array([1.96 * math.sqrt(local_variance(log.reward[p])) / (p.stop - p.start) for p in parts])
    return Course(clock, value, value - half, value + half)


def arm_courses(advice: Advice) -> dict[str, Course]:
    """Estimated rewards of the arms that were best, on average or at any time; at most 8."""
    beliefs = advice.beliefs
    if beliefs is None:
        return {}
    low, mean, high = beliefs.paths
    firsts = np.searchsorted(beliefs.bins.of_row, np.arange(len(beliefs.bins)))
    clock = advice.log.clock[firsts]
    ever = np.bincount(mean.argmax(axis=1), minlength=mean.shape[1])
    order = np.lexsort((-mean.mean(axis=0), -ever))[:MOST_ARMS]
    return {beliefs.names[k]: Course(clock, mean[:, k], low[:, k], high[:, k]) for k in order}


def draw_rewards(advice: Advice, width: float = WIDE) -> Figure:
    """Reward over time with its band, a mark and its interval at every change."""
    figure, axes = _empty(advice, "mean reward", width)
    _band(axes, reward_course(advice.log), "#0077BB", "")
    for change in advice.changes:
        axes.axvspan(change.low, change.high, color="#EE7733", alpha=0.25, linewidth=0)
        axes.axvline(change.when, color="#CC3311", linewidth=1.0)
    return figure


def draw_arms(advice: Advice, width: float = WIDE) -> Figure:
    """Estimated rewards of the best arms over time, with bands."""
    from driftbandits.plots.frame import plain

    figure, axes = _empty(advice, "estimated reward", width)
    for (name, course), colour in zip(arm_courses(advice).items(), _COLOURS, strict=False):
        _band(axes, course, colour, plain(name[:30]))
    low, high = float(advice.log.reward.min()), float(advice.log.reward.max())
    bottom, top = axes.get_ylim()
    axes.set_ylim(max(bottom, low - _MARGIN * (high - low)), min(top, high + _MARGIN * (high - low)))
    if width < WIDE:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncol=2, frameon=False, fontsize=8)
    else:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    return figure


def draw_regrets(advice: Advice, width: float = WIDE) -> Figure:
    """Regret per round in the twins, one row per player, with intervals."""
    from matplotlib.figure import Figure

    from driftbandits.plots.frame import tidy

    regrets = advice.regrets
    names = [] if regrets is None else regrets.ranked()
    figure = Figure(figsize=(width, 0.4 * len(names) + 0.9), layout="constrained")
    axes = figure.subplots()
    for row, name in enumerate(names):
        if regrets is None:
            break
        interval = regrets.interval(name)
        axes.plot((interval.low, interval.high), (row, row), color="#0077BB", linewidth=1.4)
        axes.plot(regrets.by_twin[name], [row] * len(regrets.by_twin[name]), ".", color="#99BBDD", markersize=4)
        axes.plot([interval.estimate], [row], "o", color="#0077BB", markersize=5)
    words = names if width == WIDE else [textwrap.fill(name, _NAME_LETTERS) for name in names]
    axes.set_yticks(range(len(names)), words)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(left=0)
    label = "regret per round in the twins: mean, 95 % interval, every twin"
    tidy(axes, title="", xlabel=label if width == WIDE else textwrap.fill(label, 2 * _NAME_LETTERS))
    return figure


def _empty(advice: Advice, ylabel: str, width: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    from driftbandits.plots.frame import WITH_COMMAS, tidy

    figure = Figure(figsize=(width, _HIGH), layout="constrained")
    axes = figure.subplots()
    axes.locator_params(axis="x", nbins=7 if width == WIDE else 4)
    tidy(axes, title="", xlabel="round" if advice.log.time is None else "time", ylabel=ylabel)
    if advice.log.time is None:
        axes.xaxis.set_major_formatter(WITH_COMMAS)
    elif advice.log.time[0] > 1e8:
        from matplotlib.ticker import FuncFormatter

        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: str(np.datetime64(int(x), "s"))[:10]))
    return figure, axes


def _band(axes: Axes, course: Course, colour: str, name: str) -> None:
    axes.fill_between(course.clock, course.low, course.high, color=colour, alpha=0.15, linewidth=0)
    axes.plot(course.clock, course.value, color=colour, linewidth=1.3, label=name)


# --- the page ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Image:
    """A figure inside the page, drawn for wide screens and for narrow ones."""

    address: str
    narrow: str
    alt: str
    caption: str


@dataclass(frozen=True)
class Section:
    """A part of the page: sentences, figures, a table, a piece of a file."""

    title: str
    lines: tuple[str, ...]
    images: tuple[Image, ...] = ()
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    code: str = ""


def check_page(path: str | os.PathLike[str]) -> None:
    """Refuse what would keep the page from being written, before the work that it shows is done."""
    check_path("the page's path must be a name such as 'advice.html'", path)
    page = Path(path).absolute()
    if page.is_dir() or not os.access(page.parent, os.W_OK):
        what = "is a folder" if page.is_dir() else f"cannot be written: there is no folder {page.parent} of yours"
        raise InputError(f"{path} {what}; name a file such as advice.html in a folder that is there")
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
        import yaml  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), extra="experiments", purpose="the page") from None


def save(advice: Advice, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write the page and the files; gives their paths."""
    check_page(path)
    import jinja2

    page = Path(path)
    written = [] if advice.recommendation is None else _write_files(advice, page)
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(_text("driftbandits.logs", "advice.html"))
    words = {
        "title": TITLE,
        "style": _style(),
        "verdict": advice.verdict,
        "summary": advice.sentences()[1 + min(len(advice.changes), _CHANGES_SHOWN) :],
        "sections": _sections(advice, page),
        "version": __version__,
    }
    write_whole(page, template.render(page=words).encode())
    return (str(page), *written)


def _text(package: str, name: str) -> str:
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def _style() -> str:
    sheets = [file for file in resources.files("driftbandits.report").iterdir() if file.name.endswith(".css")]
    return "\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets)


def _sections(advice: Advice, page: Path) -> tuple[Section, ...]:
    if advice.beliefs is None:
        cure = "Log more rounds, play every arm now and then, and ask again. Nothing is recommended until then."
        return (Section("What to do", (cure,)),)
    return (_moving(advice), _amount(advice), _paying(advice), _doing(advice, page))


def _moving(advice: Advice) -> Section:
    lines, beliefs = [], advice.beliefs
    if beliefs is not None:
        shares = ", ".join(f"{kind} {beliefs.weight_of(kind):.2f}" for kind in ("still", "drifts", "switches"))
        lines.append(f"How the world moves, by a Gaussian process (a model, not a promise): {shares}.")
    if advice.movement is not None:
        odds = min(advice.movement.evidence, 600.0)
        lines.append(f"The rewards are {math.exp(odds):.2g} times as likely if something moves as if nothing does.")
    lines += [change.words for change in advice.changes[:_CHANGES_SHOWN]] or ["No change was found."]
    if len(advice.changes) > _CHANGES_SHOWN:
        lines.append(f"And {counted(len(advice.changes) - _CHANGES_SHOWN, 'more change')}, marked in the figure.")
    caption = "Mean reward of the policy that logged, with 95 % bands. Marks: changes found, with their intervals."
    shown = arm_courses(advice)
    which = "all arms" if beliefs is not None and len(shown) == len(beliefs.names) else f"the {len(shown)} best arms"
    arms = f"Estimated rewards of {which}, those first that were best most often, with 95 % bands."
    images = (_image(advice, draw_rewards, caption), _image(advice, draw_arms, arms))
    chance = f"{100 * advice.false_alarm:g} %"
    promise = f"If nothing moved, something would be reported with a probability of about {chance} at most."
    return Section("1. Does the world move?", (promise, *lines), images)


def _amount(advice: Advice) -> Section:
    moved = advice.variation
    least = advice.least_changes
    lines = [f"{counted(least, 'change')} at once {'is' if least == 1 else 'are'} certain, up to false alarms."]
    if moved is not None and moved.seen:
        lines.append(
            f"Between neighbouring windows of {counted(moved.window, 'row')} the arm that moved most moved by "
            f"{moved.total:.3g} in all, corrected for noise ({counted(moved.seen, 'pair')} of windows compared). "
            f"Without any movement it would be up to {moved.by_chance:.3g} (the largest of {CHANCES} permutations)"
            f"{'.' if moved.total > moved.by_chance else _too_noisy(advice)}"
        )
    return Section("2. How much?", tuple(lines))


def _too_noisy(advice: Advice) -> str:
    if not advice.changes:
        return ", so this log is too noisy to say how much moves."
    return (
        ", so this measure, which compares single arms in short windows, is too noisy here to say how much moves. The "
        "changes in section 1 are found by adding up evidence over many rows; their sizes stand there."
    )


def _paying(advice: Advice) -> Section:
    regrets = advice.regrets
    if regrets is None:
        return Section("3. Does adapting pay?", ("No twin was played.",))
    rows = tuple(
        (name, f"{i.estimate:.4g}", f"{i.low:.4g} to {i.high:.4g}")
        for name, i in ((name, regrets.interval(name)) for name in regrets.ranked())
    )
    about = (
        f"{counted(len(next(iter(regrets.by_twin.values()))), 'world')} were sampled from what the log says, with its "
        f"noise; every policy began anew in each and played {counted(regrets.rounds, 'round')}."
    )
    if regrets.scale > 1:
        about += (
            f" The log is longer, so a round stands for {regrets.scale} rows: its reward is their mean, and windows "
            f"are shorter by as much. A policy that decides row by row loses a little less than one in these twins."
        )
    if advice.beliefs is not None and is_masked(advice.beliefs.log):
        about += " CalibratedOPKB learns nothing in rounds that do not offer every arm, so it did not play."
    if advice.beliefs is not None and advice.beliefs.log.segment is None and advice.log.segment is not None:
        about += " There are too many arms and segments to tell all apart: segments were averaged over."
    why = [] if advice.recommendation is None else [advice.recommendation.why]
    if advice.contexts is not None:
        columns = counted(len(advice.contexts.columns), "column")
        why.append(f"{advice.contexts.words} Compared on the rows of the log itself, with {columns} of contexts.")
    image = _image(advice, draw_regrets, "Regret per round: what was lost against the best arm of every round.")
    return Section("3. Does adapting pay?", (*why, about), (image,), ("policy", "regret per round", "95 %"), rows)


def _doing(advice: Advice, page: Path) -> Section:
    chosen = advice.recommendation
    if chosen is None:
        return Section("4. What to do", ("Nothing is recommended.",))
    names = _names(page)
    lines = [
        f"{names['run']} plays the recommended policy in twins of this log: driftbandits run {names['run']}.",
        f"{names['service']} is the body with which the service makes this experiment.",
    ]
    if chosen.fixed_arm is not None:
        lines.insert(0, f"{chosen.words()} The files are for this policy.")
    if chosen.waiting is not None:
        lines.append(chosen.waiting.words)
    return Section("4. What to do", tuple(lines), code=chosen.run_file(f"{names['world']}:twin"))


def _image(advice: Advice, draw: Callable[[Advice, float], Figure], caption: str) -> Image:
    wide, narrow = (_address(draw(advice, width)) for width in (WIDE, NARROW))
    return Image(wide, narrow, caption, caption)


def _address(figure: Figure) -> str:
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "driftbandits"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return f"data:image/svg+xml;charset=utf-8,{urllib.parse.quote(buffer.getvalue())}"


def _names(page: Path) -> dict[str, str]:
    stem = page.stem.replace(".", "_").replace(" ", "_")
    return {
        "run": f"{stem}.run.yaml",
        "service": f"{stem}.service.json",
        "world": f"{stem}_twin.py",
        "numbers": f"{stem}_twin.npz",
    }


def _write_files(advice: Advice, page: Path) -> list[str]:
    """The run file with its world, and the service's body."""
    chosen, beliefs, names = advice.recommendation, advice.beliefs, _names(page)
    if chosen is None or beliefs is None:
        return []
    log, best = beliefs.log, beliefs.fitted[int(beliefs.weights.argmax())]
    arms = cell_arms(log)
    worlds = [sample_world(log, beliefs.bins, best, arms, number, 0)[1] for number in range(_TWINS_WRITTEN)]
    place = "logs.twins" if isinstance(worlds[0].noise, SharesOfSuccesses) else "environments"
    noise = f"db.{place}.{worlds[0].noise!r}"
    contents: dict[str, bytes] = {
        names["numbers"]: _numbers(log, worlds),
        names["world"]: _WORLD.format(numbers=names["numbers"], noise=noise).encode(),
        names["run"]: chosen.run_file(f"{names['world']}:twin").encode(),
        names["service"]: chosen.service_file(log, page.stem).encode(),
    }
    for name, content in contents.items():
        write_whole(page.with_name(name), content)
    return [str(page.with_name(name)) for name in contents]


def _numbers(log: Log, worlds: list[Tabular]) -> bytes:
    arms = arms_of(log)
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        means=np.array([world.means(0, world.horizon) for world in worlds], dtype=np.float32),
        features=arms.features,
        points=arms.points,
        names=np.array(log.names),
        segments=np.array(log.segment_names, dtype=np.str_),
    )
    return buffer.getvalue()
