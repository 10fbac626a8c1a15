"""Bodies of requests and answers: checked here, and described by the same classes in /openapi.json."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from driftbandits.live.definition import LONGEST_NAME
from driftbandits.live.requests import MOST_PER_CALL

# No control codes and no line breaks, as the library wants it; no slash, since names stand in paths.
_PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+$"
_IN_PATHS = r"^[^/\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+$"
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Id = Annotated[str, Field(max_length=40)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class Body(BaseModel):
    """A body that has these fields and no others; numbers are numbers, texts are texts."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Option(Body):
    """An arm, or a segment: a name, and numbers that describe it."""

    name: Name
    features: list[Finite] | None = None


class Creation(Body):
    """What an experiment is made with."""

    name: Name
    arms: Annotated[list[Option | Name], Field(min_length=1)]
    policy: str = "AutoBandit"
    settings: dict[str, Any] | None = None
    segments: list[Option | Name] | None = None
    kernel: dict[str, Any] | None = None
    reward_range: Annotated[list[Finite], Field(min_length=2, max_length=2)] = [0.0, 1.0]
    patience: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    missing: Finite | Literal["forget"] | None = None
    fallback: str | None = None
    seed: int | None = None


class Deciding(Body):
    """How often to decide, among which arms, for which kind of request."""

    size: Annotated[int, Field(ge=1, le=MOST_PER_CALL)] = 1
    allowed: list[str] | None = None
    segment: str | None = None


class OneReward(Body):
    """The reward of a decision."""

    id: Id
    reward: Finite


class ManyRewards(Body):
    """Rewards of several decisions.

    Each is judged for itself: one out of range, or of a decision that is not there, does not stop the others. A body
    that has another form is refused whole.
    """

    rewards: Annotated[list[OneReward], Field(max_length=MOST_PER_CALL)]


class Forgetting(Body):
    """Decisions whose rewards will never come."""

    ids: Annotated[list[Id], Field(max_length=MOST_PER_CALL)]


class ArmsChange(Body):
    """Arms that come and go."""

    add: list[Option | Name] = []
    retire: list[str] = []
    bring_back: list[str] = []


class Nothing(Body):
    """An empty body, or {}."""


# --- answers ----------------------------------------------------------------------------------------------------------


class Created(BaseModel):
    """The experiment that was made."""

    name: str


class DecisionAnswer(BaseModel):
    """Play `arm`; it was drawn with `probability`. `fallback`: not the policy decided but what stands in for it."""

    id: str
    arm: str
    probability: float
    fallback: bool


class Decisions(BaseModel):
    """What was decided."""

    decisions: list[DecisionAnswer]


class RejectedReward(BaseModel):
    """A reward that was not taken, and why."""

    id: str
    reason: str


class RewardAnswer(BaseModel):
    """What became of rewards."""

    accepted: int
    repeated: int
    late: int
    rejected: list[RejectedReward]


class Forgotten(BaseModel):
    """How many decisions were forgotten."""

    forgotten: int


class ArmsAnswer(BaseModel):
    """The arms that there are now."""

    active: list[str]
    retired: list[str]


class Paused(BaseModel):
    """Whether the fallback answers."""

    paused: bool


class Restarted(BaseModel):
    """How often it was restarted."""

    restarts: int


class Events(BaseModel):
    """Rows of the journal, and what to ask for next."""

    events: list[dict[str, Any]]
    next: int


class ProblemBody(BaseModel):
    """An error: RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
