"""What happened in a simulated run, a column a quantity."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from driftbandits.errors import InputError, MissingExtraError
from driftbandits.types import Change, Floats, Ints

_COLUMNS = ("arm", "reward", "regret", "probability", "law")
_FORMAT = 1


@dataclass(frozen=True)
class Trace:
    """Columns of equal length, one entry a round from round `start` on; rewards and regrets in the world's units.

    `regret` is the best mean of the round less the mean of the arm played (not cumulative), `probability` that with
    which the arm was drawn, `law` the number of the law. `seconds` is the wall time of policy and world together.
    """

    start: int
    arm: npt.NDArray[np.int32]
    reward: Floats
    regret: Floats
    probability: Floats
    law: Ints
    changes: tuple[Change, ...]
    seconds: float
    policy: str
    world: str
    seed: int

    def __post_init__(self) -> None:
        for name in _COLUMNS:
            getattr(self, name).flags.writeable = False

    def __len__(self) -> int:
        return len(self.arm)

    @property
    def cumulative_regret(self) -> Floats:
        """Regret up to and including every round, shape (rounds,)."""
        return np.cumsum(self.regret)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the columns, with everything else as metadata, to one Parquet file (to the side, then renamed)."""
        pa, pq = _arrow()
        notes = {
            "format": _FORMAT,
            "start": self.start,
            "changes": [dataclasses.asdict(change) for change in self.changes],
            "seconds": self.seconds,
            "policy": self.policy,
            "world": self.world,
            "seed": self.seed,
        }
        table = pa.table({name: getattr(self, name) for name in _COLUMNS})
        target = Path(path)
        beside = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            pq.write_table(
                table.replace_schema_metadata({"driftbandits": json.dumps(notes)}), beside, compression="zstd"
            )
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str]) -> Trace:
        """Read a trace written by `to_parquet`."""
        pa, pq = _arrow()
        try:
            table = pq.read_table(path)
            notes = json.loads(table.schema.metadata[b"driftbandits"])
        except (pa.ArrowInvalid, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{os.fspath(path)} is not a saved trace, or is damaged: {error}") from error
        if notes.pop("format", None) != _FORMAT:
            raise InputError(f"{os.fspath(path)} was written by another version; this one reads format {_FORMAT}")
        columns: dict[str, Any] = {name: np.array(table[name].to_numpy()) for name in _COLUMNS}
        changes = tuple(Change.from_dict(item) for item in notes.pop("changes"))
        return cls(**columns, **notes, changes=changes)


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", extra="experiments", purpose="saving a trace as Parquet") from None
    return pyarrow, pyarrow.parquet
