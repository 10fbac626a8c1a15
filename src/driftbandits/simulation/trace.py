"""What happened in a simulated run, one column per quantity."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from driftbandits import files
from driftbandits.errors import InputError, MissingExtraError
from driftbandits.frames import data_frame
from driftbandits.showing import first_line, shown
from driftbandits.types import Change, Floats, Ints

_COLUMNS = {"arm": np.int32, "reward": np.float64, "regret": np.float64, "probability": np.float64, "law": np.int64}
_FORMAT = 2


@dataclass(frozen=True, repr=False)
class Trace:
    """What happened in a simulated run: columns of equal length, one entry per round from round `start` on.

    Rewards and regrets are in the world's units.

    Parameters
    ----------
    start : the first round played
    arm : number of the arm played, per round
    reward : what it brought
    regret : the best mean of the round less the mean of the arm played; not cumulative
    probability : with which the arm was drawn
    law : number of the law it was drawn from
    changes : those found during the run
    seconds : wall time of policy and world together
    policy, world : what was played, as their reprs say
    seed : of the noise

    >>> import driftbandits as db
    >>> world = db.environments.create("switching/1", seed=0, horizon=100, switches=(50,))
    >>> trace = db.simulate(db.Uniform(world.arms), world)
    >>> len(trace), trace.regret.shape, trace.changes
    (100, (100,), ())
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

    def __repr__(self) -> str:
        """What happened, in one line."""
        rounds = f"rounds {self.start} to {self.start + len(self) - 1}"
        found = (
            f"changes found at {shown([change.round for change in self.changes])}"
            if self.changes
            else "no changes found"
        )
        return f"Trace({rounds}, regret {self.regret.sum():.5g}, {found}, {self.seconds:.2g} s, seed {self.seed})"

    @property
    def cumulative_regret(self) -> Floats:
        """Regret up to and including every round, shape (rounds,)."""
        return np.cumsum(self.regret)

    def to_pandas(self) -> Any:
        """The columns as a DataFrame, one row per round.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        MissingExtraError
            Without pandas.

        >>> import driftbandits as db
        >>> world = db.environments.create("switching/1", seed=0, horizon=100, switches=(50,))
        >>> list(db.simulate(db.Uniform(world.arms), world).to_pandas().columns)
        ['round', 'arm', 'reward', 'regret', 'probability', 'law']
        """
        rounds = np.arange(self.start, self.start + len(self))
        return data_frame(
            {"round": rounds, **{name: getattr(self, name) for name in _COLUMNS}}, purpose="a trace as a table"
        )

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the columns, with everything else as metadata, to one Parquet file, whole or not at all.

        Parameters
        ----------
        path : where to

        Raises
        ------
        MissingExtraError
            Without pyarrow, which the extra `experiments` brings.

        >>> import driftbandits as db, tempfile
        >>> world = db.environments.create("switching/1", seed=0, horizon=100, switches=(50,))
        >>> trace = db.simulate(db.Uniform(world.arms), world)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trace.to_parquet(f"{folder}/run.parquet")
        ...     bool((Trace.from_parquet(f"{folder}/run.parquet").reward == trace.reward).all())
        True
        """
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
        metadata = {"driftbandits": json.dumps(notes), "driftbandits.seal": files.BLANK_SEAL}
        table = pa.table({name: getattr(self, name) for name in _COLUMNS}).replace_schema_metadata(metadata)
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
        files.write_whole(path, files.sealed(sink.getvalue().to_pybytes()))

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str]) -> Trace:
        """Read a trace written by `to_parquet`, which has an example.

        Parameters
        ----------
        path : of the file

        Returns
        -------
        Trace

        Raises
        ------
        InputError
            If the file is damaged or something else.
        """
        arrow = _arrow()
        content = Path(path).read_bytes()
        try:
            return cls(**_fields(content, *arrow))
        except Exception as error:  # Arrow raises a dozen kinds of errors at odd bytes
            raise InputError(f"{os.fspath(path)} is not a saved trace, or is damaged: {first_line(error)}") from error


def _fields(content: bytes, pa: Any, pq: Any) -> dict[str, Any]:
    """What a trace is made of, from the content of its file."""
    if not files.seal_holds(content):
        raise ValueError("it has no seal, or its content is not what was written")
    table = pq.read_table(pa.BufferReader(content), page_checksum_verification=True)
    notes = json.loads(table.schema.metadata[b"driftbandits"])
    if notes.pop("format") != _FORMAT:
        raise ValueError(f"it was written by another version; this one reads format {_FORMAT}")
    notes["changes"] = tuple(Change.from_dict(item) for item in notes["changes"])
    columns = {name: np.array(table[name].to_numpy()) for name in _COLUMNS}
    if any(columns[name].dtype != kind for name, kind in _COLUMNS.items()):
        raise ValueError("its columns have other types")
    return {**columns, **notes}


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", extra="experiments", purpose="saving a trace as Parquet") from None
    return pyarrow, pyarrow.parquet
