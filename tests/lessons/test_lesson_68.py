"""The arrays of lesson 68, run as they stand in its cells, beside SCALE-Sim's."""

import numpy as np
import pytest
from scalesim.compute.systolic_compute_is import systolic_compute_is
from scalesim.compute.systolic_compute_os import systolic_compute_os
from scalesim.compute.systolic_compute_ws import systolic_compute_ws
from scalesim.scale_config import scale_config

from cnnlab.lessons import lesson_68 as lesson
from tests.lessons import breaking

PATH = breaking.NOTEBOOKS / "68_arrays_of_tiny_machines.ipynb"
THEIRS = {
    "output": systolic_compute_os,
    "weight": systolic_compute_ws,
    "input": systolic_compute_is,
}


@pytest.fixture(scope="module")
def page():
    """The names that the lesson's imports and its cells of matter define."""
    names, cells = {}, breaking.read(PATH)
    imports = next(cell for cell in cells if "from cnnlab import" in cell.source)
    for cell in (imports, *(cells[k] for k in breaking.matter(cells))):
        exec(cell.source, names)
    return names


@pytest.mark.parametrize("stays", lesson.STAYS)
@pytest.mark.parametrize("sizes", [(8, 5, 8), (16, 24, 4), (7, 9, 5), (1, 1, 1), (30, 2, 11)])
@pytest.mark.parametrize("R, C", [(4, 3), (2, 8), (1, 1)])
def test_cycles_and_reads_are_those_of_scale_sim(page, stays, sizes, R, C):
    """SCALE-Sim 3 writes results while output stationary elements work: R cycles less a tile."""
    M, K, N = sizes
    x, w, config = np.ones((M, K)), np.ones((K, N)), scale_config()
    config.set_arr_dims(R, C)
    config.valid_conf_flag = True  # which reading a file would set
    theirs = THEIRS[stays]()
    theirs.set_params(config_obj=config, ifmap_op_mat=x, filter_op_mat=w, ofmap_op_mat=x @ w)
    n_cycles = len(theirs.get_demand_matrices()[0])
    drains = -(-M // R) * -(-N // C) * R if stays == "output" else 0
    _, counts = page["product"](x, w, stays, R, C)
    assert counts["cycles"] == n_cycles + drains == lesson.cycles(*sizes, stays, R, C)
    assert counts["x"] == theirs.get_ifmap_requests()
    assert counts["w"] == theirs.get_filter_requests()


def test_the_steps_show_every_cycle(page):
    states = []
    page["output_stationary"](np.eye(2), np.eye(2), 2, 2, lambda **state: states.append(state))
    steps = lesson.steps({"a": states, "b": states[:-1]})
    assert len(steps) == 2 * 2 + 2 + 2 - 2
    assert "2 of 6. Cycle 2. a: 3 of 4 work; b: 3 of 4 work." in steps.html
