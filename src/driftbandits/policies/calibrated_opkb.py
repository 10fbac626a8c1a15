"""CalibratedOPKB: ADA-OPKB without constants, and with alarms that carry a guarantee."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal

import numpy as np

from driftbandits.arms import ArmSet
from driftbandits.design import effective_dimension
from driftbandits.detection import gaps
from driftbandits.errors import InputError
from driftbandits.policies import state as states
from driftbandits.policies.blocks import BlockPolicy
from driftbandits.policies.calibrated.closed_forms import (
    BUDGET,
    Calibration,
    block_size,
    least_mixing,
    replay_scale,
    ridge,
)
from driftbandits.policies.calibrated.streams import Streams, part_arms
from driftbandits.policies.calibrated.surrogate import Surrogate
from driftbandits.policies.checks import check_positive
from driftbandits.policies.detectors import Found
from driftbandits.seeding import stream
from driftbandits.types import Change, Floats, Verdict


class CalibratedOPKB(BlockPolicy):
    """ADA-OPKB."""

    _source: Surrogate
    _levels: Calibration
    _detector: Streams

    def __init__(
        self,
        arms: ArmSet,
        *,
        horizon: int | None = None,
        seed: int | None = 0,
        false_alarm: float = 0.1,
        mode: Literal["practice", "theory"] = "practice",
        kernel: Literal["auto", "given"] = "auto",
        reward_range: tuple[float, float] = (-1.0, 1.0),
        out_of_range: Literal["error", "clip"] = "error",
        pending_limit: int = 1_000_000,
    ) -> None:
        super().__init__(
            arms,
            horizon=horizon,
            seed=seed,
            reward_range=reward_range,
            out_of_range=out_of_range,
            pending_limit=pending_limit,
        )
        self.false_alarm = check_positive("false_alarm", false_alarm)
        if self.false_alarm >= 1:
            raise InputError(f"false_alarm is a probability and must lie in (0, 1), got {false_alarm!r}")
        if mode not in ("practice", "theory"):
            raise InputError(f"mode must be 'practice' or 'theory', got {mode!r}")
        if kernel not in ("auto", "given"):
            raise InputError(
                f"kernel must be 'auto' or 'given', got {kernel!r}; a kernel of your own goes into the ArmSet"
            )
        self.mode: Literal["practice", "theory"] = mode
        self.kernel: Literal["auto", "given"] = kernel
        self._designs: dict[tuple[int, float], tuple[Floats, float]] = {}

    # --- the parts ----------------------------------------------------------------------------------------------

    def _assemble(self, horizon: int | None) -> None:
        self._make_parts()
        self._source.begin()

    def _make_parts(self) -> None:
        self._source = Surrogate(self.arms, auto=self.kernel == "auto")
        self._detector = Streams(self.false_alarm, stream(self.seed, "ranks"))
        self._designs = {}

    def _design_at(self, regulariser: float) -> tuple[Floats, float]:
        """Optimal design of the kernel believed, and its effective dimension."""
        key = (self._source.kernel, regulariser)
        if key not in self._designs:
            law = self._solve(regulariser).probabilities
            dimension = effective_dimension(self._source.present, regulariser=regulariser, probabilities=law)
            self._designs[key] = (law, dimension)
        return self._designs[key]

    def _levels_for(self, block: int) -> Calibration:
        noise, signal, told = self._source.noise, self._source.signal, self._source.told
        if block == 0:
            size = block_size(lambda regulariser: self._design_at(regulariser)[1], noise, signal)
        else:
            size = self._levels.block_size
        regulariser = ridge(noise, signal, size * 2.0**block)
        dimension = self._design_at(regulariser)[1]
        behind = max(told, size)  # rounds behind the gaps
        known = self._design_at(ridge(noise, signal, behind))[1]
        width = math.sqrt(noise * known / behind + (self._source.shift if block == 0 else 0.0))
        if self.mode == "theory":
            width *= math.sqrt(2.0 * math.log(2.0 * len(self.arms)))
        self._detector.cells = part_arms(self._source.present, dimension)
        return Calibration(size, regulariser, dimension, width)

    def _optimal_design(self, moved: bool) -> Floats:
        return self._design_at(self._levels.regulariser)[0]

    def _solve(self, regulariser, *, costs=None, candidates=None):
        import os
        if not int(os.environ.get('POST','1')) or (costs is None and candidates is None) or self.mode == "theory":
            return super()._solve(regulariser, costs=costs, candidates=candidates)
        from driftbandits.design import solve_design
        phi = self._source.present
        n_j = self._levels.block_size * 2.0 ** len(self._epoch.laws)
        counts = self._source.since(0).counts
        M = (phi.T * (counts / n_j)) @ phi
        M[np.diag_indices_from(M)] += regulariser
        import scipy.linalg
        R = np.linalg.cholesky(M)
        psi = np.ascontiguousarray(scipy.linalg.solve_triangular(R, phi.T, lower=True).T)
        return solve_design(psi, costs=costs, candidates=candidates, regulariser=1.0)

    def _begins_informed(self) -> bool:
        return self._source.follows or self._source.told >= self._levels.block_size

    def _rewards(self) -> Floats:
        return self._source.mean()

    def _baseline(self) -> Floats:
        return self._source.mean()

    def _mixing(self, block: int, law: Floats, design: Floats, estimated: Floats) -> float:
        levels = self._levels
        if self.mode == "theory":
            largest = math.sqrt(levels.block_size * 2.0**block * levels.dimension)
            return least_mixing(self._source.present, law, design, levels.regulariser, largest)
        return BUDGET * min(1.0, levels.width / max(float(design @ estimated), 1e-12))

    def _replay_scale(self, block: int) -> float:
        return replay_scale(self._epoch.laws, gaps(self._rewards()))

    def _describe(self, found: Found) -> Change:
        source = self._source
        arms = np.array(found.verdict.arms)
        recent = source.since(found.first_round)
        arms = arms[recent.counts[arms] > 0]
        before = source.mean()[arms]
        after = recent.sums[arms] / recent.counts[arms]
        verdict = Verdict(found.verdict.statistic, found.verdict.threshold, tuple(arms.tolist()))
        return super()._describe(dataclasses.replace(found, verdict=verdict, before=before, after=after))

    # --- state --------------------------------------------------------------------------------------------------

    def _settings(self) -> dict[str, Any]:
        return {"false_alarm": self.false_alarm, "mode": self.mode, "kernel": self.kernel}

    def _export_levels(self) -> dict[str, Any]:
        return dataclasses.asdict(self._levels)

    def _reassemble(self, source: states.Reader, levels: states.Reader) -> None:
        self._make_parts()
        self._source.load(source)
        self._levels = Calibration(
            levels.integer("block_size", low=1),
            levels.number("regulariser"),
            levels.number("dimension"),
            levels.number("width"),
        )
