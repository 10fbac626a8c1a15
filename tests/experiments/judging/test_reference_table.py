import dataclasses

import pytest

from driftbandits.errors import InputError
from driftbandits.experiments.definitions.real_series import REAL
from driftbandits.experiments.definitions.specs import cells_of
from driftbandits.experiments.judging.reference_table import reference_table
from driftbandits.experiments.running.cells import run_cell


def test_references_fall_short_of_the_best_of_every_round_in_their_order():
    experiment = dataclasses.replace(REAL["real/digits"], seeds=(0,))
    table = reference_table([experiment]).set_index("reference")["shortfall"]
    assert table["fixed"] > table["1 switch"] > table["3 switches"] > table["10 switches"] > 0
    uniform = next(cell for cell in cells_of(experiment) if cell.policy.label == "Uniform")
    assert run_cell(uniform).regret[-1] > table["fixed"]


def test_references_are_for_real_data():
    fake = dataclasses.replace(REAL["real/digits"], id="mine")
    with pytest.raises(InputError, match="'mine' is not made from real data"):
        reference_table([fake])
