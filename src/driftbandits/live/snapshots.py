"""Snapshots: what follows from a journal up to an event, as one sealed file of JSON values and arrays."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.errors import StateError
from driftbandits.live.definition import Definition, Option
from driftbandits.live.entries import Entry
from driftbandits.live.player import Counts, Open, Player
from driftbandits.policies import find_policy
from driftbandits.state import archive
from driftbandits.version import __version__

FORMAT = 1
SECONDS = 0.4  # of processor for replaying what came since: then a snapshot is due; a busy machine makes it a second
KEPT = 3  # the newest
KEPT_EVERY = 100_000  # events, for looking back


def export(player: Player) -> dict[str, Any]:
    """The state of a player, as `load` takes it; nothing of it changes when the player goes on."""
    rows = [(seq, *one) for seq, one in player.open.items()]
    return {
        "snapshot": FORMAT,
        "library": __version__,
        **player.books(),
        "open": np.array(rows, dtype=np.int64).reshape(-1, 4),
        "policy": None if player.policy is None else player.policy.state_dict(),
    }


def pack(state: dict[str, Any]) -> bytes:
    """A state as it is stored."""
    return archive.pack(state)


def unpack(content: bytes, definition: Definition) -> Player:
    """A player that goes on from a snapshot; StateError if it is damaged, or of a policy that no longer is."""
    state = archive.unpack(content, limit=states.LIMIT, look=lambda _: None)
    return load(state, definition)


def load(state: Any, definition: Definition) -> Player:
    """Inverse of `export`, checking every value."""
    reader = states.Reader(state, "snapshot")
    reader.integer("snapshot", low=FORMAT, high=FORMAT)
    player = Player(definition, with_policy=False)
    player.seq, player.time, player.seal = (reader.integer(name) for name in ("seq", "time", "seal"))
    player.paused, player.trouble = reader.flag("paused"), reader.text("trouble")
    player.notices = _read_notices(reader)
    player.patience = None if reader.raw("patience") is None else reader.number("patience")
    player.fallback = None if reader.raw("fallback") is None else reader.text("fallback")
    counts = reader.reader("counts")
    player.counts = Counts(**{name: counts.integer(name) for name in Counts.__slots__})
    player.entries = _read_entries(reader)
    rows = reader.array("open", np.int64, (None, 4))
    inside = (rows[:, 0] > 0) & (rows[:, 0] <= player.seq) & (rows[:, 2] >= 0) & (rows[:, 2] < len(player.entries))
    states.check(bool(inside.all() and (np.diff(rows[:, 0]) > 0).all()), "open decisions")
    player.open = OrderedDict((seq, Open(*rest)) for seq, *rest in rows.tolist())
    _read_policy(reader, player)
    return player


def _read_notices(reader: states.Reader) -> dict[str, str]:
    try:
        return {str(kind): str(said) for kind, said in json.loads(reader.text("notices")).items()}
    except (ValueError, AttributeError) as error:
        raise StateError(f"the notices in the snapshot are not usable: {error}") from error


def _read_entries(reader: states.Reader) -> list[Entry]:
    try:
        listed = json.loads(reader.text("arms"))
        entries = [Entry(Option(str(name), tuple(map(float, features))), bool(gone)) for name, features, gone in listed]
    except (ValueError, TypeError) as error:
        raise StateError(f"the arms in the snapshot are not usable: {error}") from error
    states.check(bool(entries), "arms")
    return entries


def _read_policy(reader: states.Reader, player: Player) -> None:
    player.number_arms()
    if reader.raw("policy") is not None:
        player.adopt(find_policy(player.definition.policy).restore(player.build_arms(), reader.raw("policy")))


def superfluous(seqs: Sequence[int]) -> list[int]:
    """Of snapshots at these events, those that need not be kept: not the newest three, not the first of 100,000.

    >>> superfluous([10, 60_000, 99_000, 120_000, 180_000, 190_000, 195_000])
    [60000, 99000]
    """
    kept = set(sorted(seqs)[-KEPT:])
    first: dict[int, int] = {}
    for seq in sorted(seqs):
        first.setdefault(seq // KEPT_EVERY, seq)
    return [seq for seq in sorted(seqs) if seq not in kept and seq not in first.values()]
