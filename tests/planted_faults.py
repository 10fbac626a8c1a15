"""Twenty one-line faults, each planted in a copy of the repository, and whether the tests of its area catch it.

    python -m tests.planted_faults             # all of them; ends with 1 if one is not caught
    python -m tests.planted_faults 3 7         # some of them, by number

A line that has changed since is an error: plant the fault anew.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "src/driftbandits"


class Fault(NamedTuple):
    """What goes wrong, in which file, the line that stands there, the wrong one, and the tests of the area."""

    what: str
    file: str
    right: str
    wrong: str
    tests: str


FAULTS = (
    Fault(
        "sign of a reward",
        "policies/rewards.py",
        "return (reward - self.middle) / self.half",
        "return (self.middle - reward) / self.half",
        "tests/policies/test_rewards.py tests/testing/test_conformance.py",
    ),
    Fault(
        "a window one round too long",
        "policies/window.py",
        "range(self._cleared, now - self.length)",
        "range(self._cleared, now - self.length - 1)",
        "tests/policies/gp tests/policies/ucb",
    ),
    Fault(
        "a policy without its lock",
        "_util/guard.py",
        "with guard.lock: result",
        "with threading.RLock(): result",
        "tests/policies/test_guard.py",
    ),
    Fault(
        "rewards released one round late",
        "policies/decisions.py",
        "while self._heap and self._heap[0][0] < before:",
        "while self._heap and self._heap[0][0] < before - 1:",
        "tests/policies/test_decisions.py tests/policies/test_base.py",
    ),
    Fault(
        "a reward taken back with the sign of one added",
        "policies/gp/posterior.py",
        "self._shift(arm, reward, -1.0)",
        "self._shift(arm, reward, 1.0)",
        "tests/policies/gp",
    ),
    Fault(
        "discounted weights that do not fade",
        "policies/ucb/ucb.py",
        "self._fade *= self._resolved ** (self.rounds - self._clock)",
        "self._fade *= self._resolved ** 0",
        "tests/policies/ucb",
    ),
    Fault(
        "an estimate without inverse propensities",
        "design/blocks.py",
        "weights += factor.solve(features[support].T @ row[support])",
        "weights += features[support].T @ row[support]",
        "tests/test_estimation.py tests/policies/opkb",
    ),
    Fault(
        "a change found at a split one too late",
        "detection/glr.py",
        "last_round=self.rounds[best]",
        "last_round=self.rounds[min(best + 1, len(self.rounds) - 1)]",
        "tests/detection/test_glr.py",
    ),
    Fault(
        "a martingale that bets more than it has",
        "detection/bets.py",
        "return 1.0 / (1.0 + math.log1p(numbers))",
        "return 1.0 / (1.0 + 0.5 * math.log1p(numbers))",
        "tests/detection",
    ),
    Fault(
        "a world that switches one round late",
        "environments/switching.py",
        "stop <= self._switches[segment]:",
        "stop <= self._switches[segment] + 1:",
        "tests/environments/test_worlds.py tests/environments/test_base.py",
    ),
    Fault(
        "regret with the wrong sign",
        "simulation.py",
        "regret=world.best(start, len(arms)) - world.means_of(start, arms),",
        "regret=world.means_of(start, arms) - world.best(start, len(arms)),",
        "tests/simulation",
    ),
    Fault(
        "a search that keeps the worst half",
        "tuning/study.py",
        "return sorted(alive, key=lambda point: (score(regrets[point], over), point))",
        "return sorted(alive, key=lambda point: (-score(regrets[point], over), point))",
        "tests/tuning",
    ),
    Fault(
        "tuning on evaluation seeds",
        "experiments/seeds.py",
        'TUNING = SeedRange("tuning", 1_000_000)',
        'TUNING = SeedRange("tuning", 2_000_000)',
        "tests/experiments/test_seeds.py tests/tuning",
    ),
    Fault(
        "inverse propensities upside down",
        "logs/estimators.py",
        "shares.of(log.arm) / log.probability",
        "log.probability / shares.of(log.arm)",
        "tests/logs/test_estimators.py",
    ),
    Fault(
        "silence counted before patience is over",
        "live/replica.py",
        "limit = now - round(1e6 * (self.patience or 0.0))",
        "limit = now",
        "tests/live/test_patience.py",
    ),
    Fault(
        "a journal whose seals are not chained",
        "live/journal.py",
        "return zlib.crc32(repr(event[:-1]).encode(), before)",
        "return zlib.crc32(repr(event[:-1]).encode(), 0)",
        "tests/live/test_damage.py tests/live/test_released_journals.py",
    ),
    Fault(
        "a swapped column of the exported log",
        "live/export.py",
        "reward, told = self._reward(",
        "told, reward = self._reward(",
        "tests/live/test_export.py",
    ),
    Fault(
        "a key for reading that may decide",
        "service/keys.py",
        '"read": {"read", "summary"},',
        '"read": {"read", "summary", "decide"},',
        "tests/service/test_keys.py",
    ),
    Fault(
        "a damaged file of runs taken for whole",
        "_util/files.py",
        "digest.update(view[start + len(_BLANK_DIGEST) :])",
        "return True",
        "tests/test_files.py tests/experiments/test_stores.py",
    ),
    Fault(
        "a network that descends uphill",
        "neural/network.py",
        "self._gemm(-rate, H.T, D.T,",
        "self._gemm(rate, H.T, D.T,",
        "tests/neural",
    ),
)


def plant(fault: Fault, folder: Path) -> None:
    """Change the one line in the copy."""
    path = folder / PACKAGE / fault.file
    text = path.read_text(encoding="utf-8")
    if text.count(fault.right) != 1:
        raise SystemExit(f"{fault.file} has {text.count(fault.right)} lines {fault.right!r}, not one")
    path.write_text(text.replace(fault.right, fault.wrong), encoding="utf-8")


def is_caught(fault: Fault) -> bool:
    """Whether a test of the area fails with the fault; that they pass without it is for the suite to say."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "copy"
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".git", "__pycache__", "_build", "*.parquet"))
        plant(fault, folder)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *fault.tests.split()]
        environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode not in (0, 1):
        raise SystemExit(f"{fault.what}: the tests did not run\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
    failed = [line for line in ended.stdout.splitlines() if line.startswith("FAILED")]
    print(f"| {fault.what} | {fault.file} | {failed[0].split()[1].rpartition('/')[2] if failed else 'NOT CAUGHT'} |")
    return bool(failed)


def main() -> int:
    """Plant those that were asked for, one after the other."""
    chosen = [int(number) for number in sys.argv[1:]] or range(1, len(FAULTS) + 1)
    begun, caught = time.monotonic(), [is_caught(FAULTS[number - 1]) for number in chosen]
    print(f"{sum(caught)} of {len(caught)} caught in {time.monotonic() - begun:.0f} s")
    return 0 if all(caught) else 1


if __name__ == "__main__":
    sys.exit(main())
