"""The advice as one HTML page, with what `run` and the service read beside it."""

from __future__ import annotations

import io
import os
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from driftbandits.checks import check_path
from driftbandits.environments import Tabular
from driftbandits.errors import MissingExtraError
from driftbandits.files import write_whole
from driftbandits.logs import figures
from driftbandits.logs.advising import Advice
from driftbandits.logs.amount import CHANCES
from driftbandits.logs.cells import arms_of, cell_arms, is_masked
from driftbandits.logs.log import Log
from driftbandits.logs.twins import sample_world
from driftbandits.showing import counted
from driftbandits.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Does this world move, and does adapting pay?"
_TWINS_WRITTEN = 3
_CHANGES_SHOWN = 4


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
    if advice.moves is None:
        cure = "Log more rounds, play every arm now and then, and ask again. Nothing is recommended until then."
        return (Section("What to do", (cure,)),)
    return (_moving(advice), _amount(advice), _paying(advice), _doing(advice, page))


def _moving(advice: Advice) -> Section:
    lines, beliefs = [], advice.beliefs
    if advice.season is not None:
        lines.append(
            f"Rhythm by a periodogram with a permutation threshold: p = {advice.season.p_value:.3g}; approximate."
        )
    if beliefs is not None:
        shares = ", ".join(f"{kind} {beliefs.weight_of(kind):.2f}" for kind in ("still", "drifts", "switches"))
        lines.append(f"How the world moves, by a Gaussian process (a model, not a promise): {shares}.")
    if advice.changes and advice.gradual:
        lines.append("What moves all the time is found as changes now and then, here:")
    lines += [change.words for change in advice.changes[:_CHANGES_SHOWN]] or ["No change was found."]
    if len(advice.changes) > _CHANGES_SHOWN:
        lines.append(f"And {counted(len(advice.changes) - _CHANGES_SHOWN, 'more change')}, marked in the figure.")
    caption = "Mean reward of the policy that logged, with 95 % bands. Marks: changes found, with their intervals."
    shown = figures.arm_courses(advice)
    which = "all arms" if beliefs is not None and len(shown) == len(beliefs.names) else f"the {len(shown)} best arms"
    arms = f"Estimated rewards of {which}, those first that were best most often, with 95 % bands."
    images = (
        _image(advice, figures.draw_rewards, caption),
        _image(advice, figures.draw_arms, arms),
    )
    chance = f"{100 * advice.false_alarm:g} %"
    promise = f"Changes are reported with a false-alarm probability of {chance}, whatever policy logged."
    return Section("1. Does the world move?", (promise, *lines), images)


def _amount(advice: Advice) -> Section:
    moved = advice.variation
    least = advice.least_changes
    lines = [f"Changes: at least {least} (L_T, the number of still stretches, is at least {least + 1})."]
    if moved is not None and moved.seen:
        lines.append(
            f"V_T between windows of {counted(moved.window, 'row')}: {moved.total:.3g}, corrected for noise "
            f"({counted(moved.seen, 'pair')} of windows compared). Without any movement it would be up to "
            f"{moved.by_chance:.3g} (the largest of {CHANCES} permutations)"
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
    if advice.beliefs is not None and is_masked(advice.beliefs.log):
        about += " CalibratedOPKB learns nothing in rounds that do not offer every arm, so it did not play."
    if advice.beliefs is not None and advice.beliefs.log.segment is None and advice.log.segment is not None:
        about += " There are too many arms and segments to tell all apart: segments were averaged over."
    why = () if advice.recommendation is None else (advice.recommendation.why,)
    image = _image(advice, figures.draw_regrets, "Regret per round: what was lost against the best arm of every round.")
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
    wide, narrow = (_address(draw(advice, width)) for width in (figures.WIDE, figures.NARROW))
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


def _write_files(advice: Advice, page: Path) -> list[str]:
    """The run file with its world, and the service's body."""
    chosen, beliefs, names = advice.recommendation, advice.beliefs, _names(page)
    if chosen is None or beliefs is None:
        return []
    log, best = beliefs.log, beliefs.fitted[int(beliefs.weights.argmax())]
    arms = cell_arms(log)
    worlds = [sample_world(log, beliefs.bins, best, arms, number, 0)[1] for number in range(_TWINS_WRITTEN)]
    noise = f"db.environments.{worlds[0].noise!r}"
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
