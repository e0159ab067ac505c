"""What the planner measures: lines through medians, by kernel and by compressor."""

import numpy as np
import pytest

from cnnlab.kernels import KERNELS
from cnnlab.measure.planner import probe
from cnnlab.measure.planner.machine import network_work
from cnnlab.network import NETWORKS


def test_a_line_is_found_again():
    fitted = probe.fitted({4: 3e-6 + 4e-7, 16: 3e-6 + 16e-7, 64: 3e-6 + 64e-7})
    assert fitted == pytest.approx((3e-6, 1e-7))
    assert probe.fitted({4: 4e-6, 64: 40e-6}).step >= 0


def test_every_kernel_of_a_network_has_a_time():
    times = probe.kernel_times(NETWORKS["report"], repeats=2)
    assert times.keys() == {
        kernel for of in network_work(NETWORKS["report"]) for kernel in of.forward + of.back
    }
    assert all(time.seconds(32) > 0 for time in times.values())


def test_timed_kernels_compute_what_they_did():
    z, y = np.array([-1.0, 2.0], np.float32).reshape(1, 2), np.empty((1, 2), np.float32)
    strategy = probe.Timed(KERNELS["vector"])
    strategy.kernel("relu")(z, y)
    assert y.tolist() == [[0, 2]]
    assert [(k.name, k.operations, n) for k, n in strategy.samples] == [("relu", 2, 1)]


def test_packing_has_both_ways():
    found = probe.packing_times(["fp16"], repeats=2)["fp16"]
    assert found.encode.seconds(10_000) > 0 and found.decode.seconds(10_000) > 0


@pytest.mark.mpi
def test_a_machine_is_measured_on_real_ranks():
    from cnnlab.ranks.cluster import cluster

    with cluster(2) as ranks:
        machine = ranks.run(probe.machine, "report", ["fp16"])[0]
    assert machine.whole and machine.packing.keys() == {"fp16"}
    assert 0 < machine.gradients(NETWORKS["report"], 32) < 1
    assert machine.link.bandwidth > 1e6
