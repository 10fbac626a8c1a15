"""Numbers on pages come from files of results: measured by a command, written with all that says how, filled in.

A file `results/NAME.json` has the command, the date, the version, the arithmetic of the machine, the seeds, the
`behaviour` of every policy, and the numbers by key. A page marks a number with the file, the key and a format:

    loses <!--result spread regret ,.0f-->123<!--/result--> in all

`python -m reproduction measure NAME` measures again and writes the file; `python -m reproduction fill` writes all
marked numbers into the pages. A test fails where a page does not say what its file does.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from driftbandits._util.files import write_whole
from driftbandits._util.machine import fingerprint
from driftbandits.errors import InputError, did_you_mean
from driftbandits.experiments.engines import Engine
from driftbandits.experiments.playing import play
from driftbandits.experiments.specs import policy_class
from driftbandits.version import __version__
from reproduction.catalogue import AUTOBANDIT
from reproduction.suite import SUITE

RESULTS = Path(__file__).parent / "results"
PAGES = Path(__file__).parents[1] / "docs"
MARK = re.compile(r"(<!--result (\S+) (\S+) (\S+?)-->)(.*?)(<!--/result-->)", re.DOTALL)


@dataclass(frozen=True)
class Measurement:
    """What was measured, and how."""

    command: str
    date: str
    version: str
    fingerprint: str
    seeds: tuple[int, ...]
    behaviour: Mapping[str, int]
    numbers: Mapping[str, float]


def new_measurement(
    name: str, numbers: Mapping[str, float], *, seeds: Sequence[int], policies: Sequence[str]
) -> Measurement:
    """The measurement called `name`, made now and here; `policies` are names of classes."""
    return Measurement(
        command=f"python -m reproduction measure {name}",
        date=datetime.now(UTC).date().isoformat(),
        version=__version__,
        fingerprint=fingerprint(),
        seeds=tuple(seeds),
        behaviour={policy: policy_class(policy).behaviour for policy in policies},
        numbers=dict(numbers),
    )


def write_measurement(name: str, measurement: Measurement, *, folder: Path = RESULTS) -> Path:
    """Write the file of results, completely or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    write_whole(path, (json.dumps(dataclasses.asdict(measurement), indent=1) + "\n").encode())
    return path


def read_measurement(name: str, *, folder: Path = RESULTS) -> Measurement:
    """The file of results called `name`. Raises InputError where there is none, or it is of something else."""
    path = folder / f"{name}.json"
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return Measurement(**{**values, "seeds": tuple(values["seeds"])})
    except FileNotFoundError:
        known = [file.stem for file in sorted(folder.glob("*.json"))]
        raise InputError(f"there is no file of results {name!r}; {did_you_mean(name, known)}") from None
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path} is no file of results: {error}") from None


def filled(text: str, *, folder: Path = RESULTS) -> str:
    """The text of a page with every marked number as its file has it.

    >>> filled("no number is marked")
    'no number is marked'
    """

    def number(found: re.Match[str]) -> str:
        opening, name, key, form, _, closing = found.groups()
        numbers = read_measurement(name, folder=folder).numbers
        if key not in numbers:
            raise InputError(f"the file of results {name!r} has no {key!r}; {did_you_mean(key, list(numbers))}")
        return f"{opening}{numbers[key]:{form}}{closing}"

    return MARK.sub(number, text)


def fill_pages(pages: Path = PAGES, *, folder: Path = RESULTS) -> list[Path]:
    """Write marked numbers into all pages below a folder; gives the pages that changed."""
    changed = []
    for page in sorted(pages.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if (now := filled(text, folder=folder)) != text:
            write_whole(page, now.encode())
            changed.append(page)
    return changed


def measure_spread() -> Measurement:
    """How much regret varies from seed to seed: AutoBandit in a world of the suite, on evaluation seeds."""
    world = dataclasses.replace(SUITE["suite/flip-3/d2"], policies=(AUTOBANDIT,))
    regrets = play([world], engine=Engine(jobs=1)).cells["regret"].to_numpy(dtype=float)
    numbers = {
        "regret": float(regrets.mean()),
        "standard_error": float(regrets.std(ddof=1) / len(regrets) ** 0.5),
        "least": float(regrets.min()),
        "most": float(regrets.max()),
        "seeds": len(regrets),
    }
    return new_measurement("spread", numbers, seeds=world.seeds, policies=[AUTOBANDIT.name])


MEASURES: Mapping[str, Callable[[], Measurement]] = {"spread": measure_spread}


def main(arguments: Sequence[str]) -> int:
    """`measure [NAME ...]`, by default all, or `fill`."""
    command, *names = arguments
    for name in names or MEASURES if command == "measure" else ():
        if name not in MEASURES:
            raise InputError(f"nothing called {name!r} is measured; {did_you_mean(name, list(MEASURES))}")
        print(write_measurement(name, MEASURES[name]()))
    for page in fill_pages():
        print(page)
    return 0
