"""The paper's neural policies with deeper networks; they take hours."""

from __future__ import annotations

from driftbandits.experiments.definitions.paper import FIVE_MATRICES
from driftbandits.experiments.groups.group import Group

FIVE_WEIGHT_MATRICES = Group(
    name="five",
    title="Five weight matrices",
    lead="The neural policies with the five weight matrices of the authors’ code, where the text has three.",
    experiments=tuple(FIVE_MATRICES.values()),
    played="in full",
)
