"""Single bits of a finished cell's file are flipped: found, harmless, or read with other numbers?"""

from __future__ import annotations

from collections.abc import Iterator

from attacks.common import AttackRow, Options, generator, said, scratch, spread, total
from driftbandits.errors import DriftbanditsError
from driftbandits.experiments.folder_store import FolderStore
from driftbandits.experiments.runner import run_cell
from driftbandits.experiments.specs import Cell, PolicySpec
from driftbandits.experiments.stores import CellResult, Store, read
from reproduction.tuning import missing

CELLS_DAMAGED = 4


def run(options: Options) -> Iterator[AttackRow]:
    """Bit flips in several cells."""
    tries = options.tries(3_000, 200)
    yield total(
        "bit flip in a stored cell",
        spread(flips, [(p, tries // CELLS_DAMAGED, options.seed) for p in range(CELLS_DAMAGED)], options),
    )


def flips(part: int, tries: int, seed: int) -> AttackRow:
    """Flip one bit of a cell's file, read it, and put the file right again."""
    rng = generator("store", part, seed)
    row = AttackRow(f"cell {part}")
    cell = Cell("switching/1", {"horizon": 400, "switches": [200], "size": 8}, PolicySpec("label", "AdaOPKB"), part)
    with scratch() as folder:
        store = FolderStore(folder)
        store.write(cell.key, run_cell(cell))
        right = read(store, [cell])[0]
        path = store.path(cell.key)
        content = path.read_bytes()
        for _ in range(tries):
            damaged = bytearray(content)
            where = int(rng.integers(len(damaged) * 8))
            damaged[where // 8] ^= 1 << where % 8
            path.write_bytes(damaged)
            outcome, bad = _read(store, cell, right)
            row.add(outcome, bad=bad, example=f"bit {where} of {8 * len(damaged)}")
            for other in list(path.parent.iterdir()):  # a bad cell may have been put aside
                other.unlink()
            path.write_bytes(content)
    return row


def _read(store: Store, cell: Cell, right: CellResult) -> tuple[str, bool]:
    try:
        if missing(store, [cell]):
            return "found", False
        results = read(store, [cell])
    except DriftbanditsError:
        return "found", False
    except Exception as error:
        return f"raised {said(error)[:60]}", True
    if not results:
        return "found", False
    return ("equal", False) if _numbers(results[0]) == _numbers(right) else ("read with other numbers", True)


def _numbers(result: CellResult) -> tuple[object, ...]:
    values = (result.changes, result.detection, result.turnover, result.seconds)
    return (result.rounds.tobytes(), result.regret.tobytes(), *map(repr, values))
