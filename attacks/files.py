"""Damaged files of saved policies: refused with a StateError, or the very policy that was saved."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attacks.common import (
    AttackRow,
    Hang,
    Options,
    arm_set,
    deadline,
    every_policy,
    generator,
    kind_of,
    limit_memory,
    make,
    play,
    said,
    same,
    scratch,
)
from driftbandits.errors import StateError

HANG_SECONDS = 20.0


def run(options: Options) -> Iterator[AttackRow]:
    """The files of every policy."""
    yield every_policy("damaged file", files, options.tries(400, 20), options)


def files(name: str, tries: int, seed: int) -> AttackRow:
    """Flip bits, cut, and overwrite a saved file."""
    rng = generator("files", name, seed)
    row = AttackRow(name)
    limit_memory()
    with scratch() as folder:
        path = folder / "policy"
        policy = make(name, horizon=None)
        play(policy, int(rng.integers(1, 300)))
        policy.ask(size=3)
        policy.save(path)
        content = path.read_bytes()
        right = policy.state_dict()
        for _ in range(tries):
            damage, damaged = _damaged(content, rng)
            path.write_bytes(damaged)
            try:
                with deadline(HANG_SECONDS):
                    state = type(policy).load(arm_set(), path).state_dict()
            except StateError:
                row.add("StateError")
            except (Exception, Hang) as error:
                row.add(f"raised {kind_of(error)}", bad=True, example=f"{name}, {damage}: {said(error)}")
            else:
                equal = same(state, right)
                row.add("equal policy" if equal else "another policy", bad=not equal, example=f"{name}, {damage}")
    return row


def _damaged(content: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    data = bytearray(content)
    kind = str(rng.choice(["bit", "bits", "cut", "garbage", "zeros", "middle"], p=[0.6, 0.1, 0.1, 0.08, 0.06, 0.06]))
    start = int(rng.integers(len(data)))
    stop = min(start + int(rng.integers(1, 64)), len(data))
    if kind in ("bit", "bits"):
        for where in [start] if kind == "bit" else rng.integers(len(data), size=5).tolist():
            data[where] ^= 1 << int(rng.integers(8))
    elif kind == "cut":
        del data[start:]
    elif kind == "middle":
        del data[start:stop]
    else:
        data[start:stop] = rng.bytes(stop - start) if kind == "garbage" else bytes(stop - start)
    return f"{kind} at {start}", bytes(data)
