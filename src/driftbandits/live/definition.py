"""What an experiment is created with: arms, policy, settings, patience, fallback. Plain values, stored as JSON.

`define` checks what a caller passes; arms and policies are built from it, at the start and in every replay alike.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from driftbandits._util.checks import as_float, as_floats, check_count, check_positive
from driftbandits._util.seeding import check_seed
from driftbandits.arms import kernels
from driftbandits.arms.arm_set import ArmSet
from driftbandits.arms.contexts import Contexts
from driftbandits.errors import InputError, JournalError, did_you_mean, near_and_valid
from driftbandits.policies import Policy, find_policy
from driftbandits.text import breaking, invisible, shown

FORMAT = 1
LONGEST_NAME = 200  # characters
MOST_ARMS = 10_000
RANK_OF_STRANGERS = 1_000  # arms with nothing in common have no fewer features than there are arms
_AS_NUMEROUS = "DiscountedUCB"  # learns from any number of them
FIELDS = (
    "arms",
    "policy",
    "settings",
    "segments",
    "contexts",
    "kernel",
    "reward_range",
    "patience",
    "missing",
    "fallback",
    "seed",
)
_WHERE = {
    "horizon": "leave it out: an experiment has no end",
    "order": "leave it out: with patience it learns in the order of the decisions, without as it is told",
}
_OWN = (
    "horizon",
    "seed",
    "reward_range",
    "order",
    "patience",
    "missing",
    "contexts",
)  # fields of their own, or the writer's


@dataclass(frozen=True, slots=True)
class Option:
    """An arm as it is declared: a name, and numbers that describe it; none where arms have nothing in common."""

    name: str
    features: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Definition:
    """Everything an experiment is made with."""

    arms: tuple[Option, ...]
    policy: str = "AutoBandit"
    settings: dict[str, Any] = field(default_factory=dict)
    segments: tuple[Option, ...] | None = None
    kernel: dict[str, Any] | None = None
    reward_range: tuple[float, float] = (0.0, 1.0)
    patience: float | None = None
    missing: float | str | None = None
    fallback: str | None = None
    seed: int = 0
    contexts: Any = None  # as `Contexts.to_dict` gives them

    def to_json(self) -> str:
        """As text, exact."""
        values = asdict(self)
        if self.contexts is None:  # versions that know no contexts can read it
            del values["contexts"]
        return json.dumps({"format": FORMAT, **values}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Definition:
        """Inverse of `to_json`."""
        try:
            values = json.loads(text)
            number = values.pop("format")
            if number != FORMAT:
                raise JournalError(f"the experiment has format {number}, and this version reads {FORMAT}")
            values["arms"] = tuple(Option(item["name"], tuple(item["features"])) for item in values["arms"])
            if values["segments"] is not None:
                values["segments"] = tuple(Option(s["name"], tuple(s["features"])) for s in values["segments"])
            values["reward_range"] = tuple(values["reward_range"])
            return cls(**values)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise JournalError(f"the definition of the experiment is damaged: {error}") from error

    # --- what is built from it ----------------------------------------------------------------------------------

    def build_arms(self, options: Sequence[Option], numbers: Sequence[int] | None = None) -> ArmSet:
        """These options as arms, measured as those of the definition; in every segment, if there are segments.

        `numbers` are those of the options among all that the experiment ever had, by default 0, 1, 2, ...
        """
        inner = self._measured(options, range(len(options)) if numbers is None else numbers)
        if self.segments is None:
            return inner
        names = [segment.name for segment in self.segments]
        if not self.segments[0].features:
            return ArmSet.crossed(inner, names)
        return ArmSet.crossed(inner, ArmSet([segment.features for segment in self.segments], names=names))

    def _measured(self, options: Sequence[Option], numbers: Sequence[int]) -> ArmSet:
        names = [option.name for option in options]
        if not options[0].features:  # they have nothing in common; a point says only which is which
            return ArmSet([[float(number)] for number in numbers], np.eye(len(options)), names)
        first = ArmSet([option.features for option in self.arms], self.kernel, [option.name for option in self.arms])
        if tuple(options) == self.arms:
            return first
        return first.with_points([option.features for option in options], names)

    def build_contexts(self) -> Contexts | None:
        """What is known of each request, if anything is."""
        return None if self.contexts is None else Contexts.from_dict(self.contexts)

    def build_policy(self, arms: ArmSet) -> Policy:
        """A new policy. With patience it learns in the order of the decisions, which the writer closes by its clock.

        A policy that learns from open decisions needs no order.
        """
        waiting: dict[str, Any] = {}
        kind, contexts = find_policy(self.policy), self.build_contexts()
        learns_open = kind.learns_open_decisions and contexts is None
        if self.patience is not None and not (learns_open and self.missing == self.reward_range[0]):
            waiting["order"] = "asked"
        if self.missing is not None:
            waiting["missing"] = self.missing
        settings = dict(self.settings)
        if contexts is not None:
            settings["contexts"] = contexts
        elif not self.arms[0].features and "rank" in inspect.signature(kind).parameters:
            settings.setdefault("rank", RANK_OF_STRANGERS)
            self._check_strangers(len(arms), settings["rank"])
        return kind(arms, seed=self.seed, reward_range=self.reward_range, **waiting, **settings)

    def _check_strangers(self, count: int, rank: Any) -> None:
        """Refuse at once what the policy would refuse after a minute: beyond twice its rank it leaves arms out."""
        if isinstance(rank, int) and count > 2 * rank:
            raise InputError(
                f"{self.policy} learns from at most {2 * rank:,} arms that have names alone, got {count:,}; give them "
                f"features, or take policy={_AS_NUMEROUS!r}, for which they may be {MOST_ARMS:,}"
            )


def define(**given: Any) -> Definition:
    """Check the fields of a new experiment; errors about unknown names suggest the nearest.

    >>> define(arms=["red", "blue"], reward_range=(0, 1)).policy
    'AutoBandit'
    """
    for name in given:
        if name not in FIELDS:
            raise InputError(
                f"an experiment has no field {name!r}; {near_and_valid(name, FIELDS)}; what a policy is set to goes "
                f"into settings={{{name!r}: ...}}"
            )
    if given.get("arms") is None:
        raise InputError("an experiment needs arms: names, or mappings with 'name' and 'features'")
    arms = read_options("arms", given["arms"])
    segments = None if given.get("segments") is None else read_options("segments", given["segments"])
    for what, options in (("names of arms", arms), ("names of segments", segments or ())):
        check_visible(what, (option.name for option in options))
    policy = given.get("policy") or "AutoBandit"
    if not isinstance(policy, str):
        name = getattr(policy, "__name__", type(policy).__name__)
        raise InputError(f"give the policy by its name, policy={name!r}, and what it is set to as settings={{...}}")
    contexts = _read_contexts(given.get("contexts"), policy)
    if contexts is not None and segments is not None:
        raise InputError(
            "an experiment has segments or contexts, not both; make the segment a column of the contexts, as in "
            "contexts={'segment': ['mobile', 'desktop']}"
        )
    kernel = given.get("kernel")
    if kernel is not None:
        if not isinstance(kernel, Mapping):
            raise InputError(
                f"kernel must be a mapping, such as {{'name': 'rbf', 'length_scale': 0.5}}, got {shown(kernel)}"
            )
        kernels.kernel_from_config(kernel)
        if not arms[0].features:
            raise InputError("a kernel compares the features of arms, and these have none; give features, or no kernel")
    definition = Definition(
        arms=arms,
        policy=policy,
        settings=_read_settings(given.get("settings")),
        segments=segments,
        kernel=None if kernel is None else dict(kernel),
        reward_range=_read_range(given.get("reward_range", (0.0, 1.0))),
        patience=check_patience(given.get("patience")),
        missing=_read_missing(given.get("missing")),
        fallback=given.get("fallback"),
        seed=check_seed(given.get("seed")),
        contexts=contexts,
    )
    check_fallback(definition.fallback, arms)
    if definition.patience is not None and definition.missing is None:
        raise InputError(
            "patience needs missing: what a decision without a reward is worth when it runs out, such as 0.0 for 'no "
            "sale', or 'forget' where that says nothing"
        )
    try:
        json.dumps(definition.settings, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"settings must be plain values, as JSON has them: {error}") from None
    definition.build_policy(definition.build_arms(arms)).law()  # refuses what does not fit
    return definition


def read_options(what: str, given: Any) -> tuple[Option, ...]:
    """Names, or mappings with a name and features: one or more, distinct, all with the same number of features."""
    if isinstance(given, ArmSet):
        names, points = given.names, given.points.tolist()
        if names is None:
            raise InputError(f"{what} need names: pass names=... to ArmSet")
        if given.independent:
            given = list(names)
        elif not given.guessed:
            raise InputError(
                f"give {what} as names and features, and their kernel as a mapping: kernel={{'name': ...}}"
            )
        else:
            given = [{"name": n, "features": p} for n, p in zip(names, points, strict=True)]
    if isinstance(given, Mapping):
        given = [{"name": name, "features": features} for name, features in given.items()]
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence) or not given:
        cure = f"; for a single one use [{shown(given)}]" if given and isinstance(given, str) else ""
        raise InputError(
            f"{what} must be a list of names, or of mappings with 'name' and 'features', got {shown(given)}{cure}"
        )
    if len(given) > MOST_ARMS:
        raise InputError(f"an experiment has at most {MOST_ARMS:,} {what}, got {len(given):,}")
    options = tuple(_read_option(what, item) for item in given)
    own = [option.name for option in options]
    twice = [name for name in set(own) if own.count(name) > 1] if len(set(own)) < len(own) else []
    if twice:
        raise InputError(f"two {what} are called {twice[0]!r}; names must be distinct")
    lengths = {len(option.features) for option in options}
    if len(lengths) > 1:
        raise InputError(f"all {what} must have the same number of features, got {sorted(lengths)}")
    return options


def _read_option(what: str, item: Any) -> Option:
    if isinstance(item, str):
        return Option(check_name(f"a name among the {what}", item))
    if not isinstance(item, Mapping) or "name" not in item:
        raise InputError(
            f"each of the {what} is a name (a text), or a mapping with 'name' and 'features', got {shown(item)}"
        )
    for key in item:
        if key not in ("name", "features"):
            raise InputError(f"{what} have no {key!r}; {near_and_valid(key, ('name', 'features'))}")
    features = item.get("features")
    try:
        values = () if features is None else tuple(as_floats(features).ravel().tolist())
    except (TypeError, ValueError, OverflowError):
        values = (math.nan,)
    if not all(math.isfinite(value) for value in values):
        raise InputError(f"features of {shown(item['name'])} must be finite numbers, got {shown(features)}")
    return Option(check_name(f"a name among the {what}", item["name"]), values)


def check_name(what: str, name: Any) -> str:
    """A name that can be shown in a line of text."""
    if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_NAME or breaking(name) is not None:
        raise InputError(
            f"{what} must be a text of 1 to {LONGEST_NAME} characters, not spaces alone, without line breaks or "
            f"control codes, got {shown(name)}"
        )
    return name


def check_visible(what: str, names: Iterable[str]) -> None:
    """Refuse new names with characters that cannot be seen: two of them would look the same. Old ones stay."""
    for name in names:
        if (odd := invisible(name)) is not None:
            raise InputError(f"{what} may have no invisible character, got {name!a} with {odd!a}; leave it out")


def check_patience(patience: Any) -> float | None:
    """Seconds, or None for no limit."""
    return None if patience is None else check_positive("patience (seconds)", patience, cure="None waits for ever")


def check_fallback(fallback: Any, arms: Sequence[Option]) -> None:
    """None, or the name of an arm."""
    names = [option.name for option in arms]
    if fallback is not None and fallback not in names:
        raise InputError(f"fallback must name an arm, or be None for any, got {shown(fallback)}")


def check_size(size: Any, most: int) -> int:
    """How many decisions one call may ask for."""
    count = check_count("size", size)
    if count > most:
        raise InputError(f"one call decides at most {most:,} times, got size={count:,}; send several")
    return count


def _read_settings(settings: Any) -> dict[str, Any]:
    if settings is None:
        return {}
    if not isinstance(settings, Mapping):
        raise InputError(f"settings must be a mapping of names to values, got {shown(settings)}")
    for name in _OWN:
        if name in settings:
            where = _WHERE.get(name, "give it as a field of its own")
            raise InputError(f"settings may not hold {name!r}; {where}")
    return dict(settings)


def _read_contexts(given: Any, policy: str) -> Any:
    """The columns of contexts as JSON values; None for none."""
    if given is None:
        return None
    if "contexts" not in inspect.signature(find_policy(policy)).parameters:
        raise InputError(f"{policy} takes no contexts; AutoBandit, DisjointLinUCB and DisjointLinThompson do")
    return (given if isinstance(given, Contexts) else Contexts.from_dict(given)).to_dict()


def _read_range(given: Any) -> tuple[float, float]:
    try:
        low, high = (as_float(value) for value in given)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"reward_range must be a pair (low, high) of numbers, got {shown(given)}") from None
    return low, high


def _read_missing(missing: Any) -> float | str | None:
    if missing is None or missing == "forget":
        return missing  # type: ignore[no-any-return]
    try:
        return as_float(missing)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"missing must be a number, 'forget' or None, got {shown(missing)}") from None


@dataclass(slots=True)
class Entry:
    """An arm that the experiment has or had; its number is its position in the list and never changes."""

    option: Option
    retired: bool = False


def changed(entries: Sequence[Entry], details: Mapping[str, Any]) -> list[Entry]:
    """Entries after a change of arms: some added, some retired, some brought back; refused if none would be left.

    >>> entries = changed([Entry(Option("red"))], {"add": ["blue"], "retire": ["red"]})
    >>> [(entry.option.name, entry.retired) for entry in entries]
    [('red', True), ('blue', False)]
    """
    found = [Entry(entry.option, entry.retired) for entry in entries]
    known = {entry.option.name: number for number, entry in enumerate(found)}
    wanted = len(found[0].option.features)
    for option in read_options("arms", details["add"]) if details.get("add") else ():
        if option.name in known:
            raise InputError(f"there is an arm called {shown(option.name)} already; bring_back one that was retired")
        if len(option.features) != wanted:
            raise InputError(f"{shown(option.name)} must have {wanted} features, as the others, got {option.features}")
        known[option.name] = len(found)
        found.append(Entry(option))
    both = set(details.get("retire", ())) & set(details.get("bring_back", ()))
    if both:
        raise InputError(f"{shown(min(both))} is to be retired and brought back at once; say one of the two")
    for name in details.get("retire", ()):
        found[number_of(known, name)].retired = True
    for name in details.get("bring_back", ()):
        found[number_of(known, name)].retired = False
    if all(entry.retired for entry in found):
        raise InputError("no arm would be left to decide for; keep at least one")
    return found


def number_of(known: Mapping[str, int], name: Any) -> int:
    """Number of the arm called `name`."""
    number = known.get(name) if isinstance(name, str) else None
    if number is None:
        near = did_you_mean(name, list(known)) if isinstance(name, str) else ""
        raise InputError(f"no arm is called {shown(name)}; {near}arms: {', '.join(map(shown, list(known)[:20]))}")
    return number
