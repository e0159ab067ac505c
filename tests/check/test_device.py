import functools

import numpy as np
import pytest

from cnnlab import check, cuda
from cnnlab.check import device as device_check
from cnnlab.check import kinds
from cnnlab.kernels import device

SOURCE = """
extern "C" __global__ void total(const float* dz, float* db, int N, int F, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N * F * size) db[i / size % F] += dz[i];
}
"""
ATOMIC = SOURCE.replace("db[i / size % F] += dz[i]", "atomicAdd(&db[i / size % F], dz[i])")


def launch(kernels, dz, db):
    db[...] = 0
    kernels.over("total", dz.size, dz, db, *dz.shape[:2], dz[0, 0].size)


def bias(source):
    return functools.partial(launch, cuda.Kernels(source))


def test_wrong_numbers_without_a_fault_are_rejected():
    source = SOURCE.replace("db[i / size % F] += dz[i]", "atomicAdd(&db[i / size % F], 2 * dz[i])")
    verdict = device_check.kernel("conv_backward_bias", bias(source))
    assert not verdict and "db[" in verdict.text and "accesses" not in verdict.text


def test_a_right_kernel_is_accepted_and_proved(capsys):
    device_check.prove("conv_backward_bias", bias(ATOMIC))
    assert "no access is at fault" in capsys.readouterr().out
    with pytest.raises(
        AssertionError, match=r"right, but the accesses are not\. total: race, line 5"
    ):
        device_check.prove("conv_backward_bias", bias(SOURCE))


def test_an_answer_without_a_kernel_is_rejected():
    def numpy_only(dz, db):
        db[...] = dz.sum((0, 2, 3))

    verdict = device_check.kernel("conv_backward_bias", numpy_only)
    assert not verdict and "no kernel was launched" in verdict.text


def test_an_answer_that_launches_the_kernels_of_the_strategy_is_rejected(capsys):
    def borrowed(dz, db):
        device.conv_backward_bias(dz, db)

    assert device_check.kernel("conv_backward_bias", borrowed)
    assert not check.exercise("conv_backward_bias", borrowed, device_check.kernel)
    assert "expected a kernel of your own" in capsys.readouterr().out


def test_tracing_ends_with_its_block():
    y, z = np.zeros(4, np.float32), np.ones(4, np.float32)
    with pytest.raises(KeyError), cuda.traced() as outer:
        device.sigmoid(z, y)
        with cuda.traced() as inner:
            device.sigmoid(z, y)
        device.sigmoid(z, y)
        raise KeyError
    device.sigmoid(z, y)
    assert len(outer) == 2 and len(inner) == 1


def test_strides_are_asked_for_only_where_they_are_taken():
    def without(x, w, b, z):
        device.conv_forward(x, w, b, z)

    assert device_check.kernel("conv_forward", without, strides=False)
    assert not device_check.kernel("conv_forward", without)


def test_more_than_numbers_may_be_asked_for():
    seen = []

    def also(traces):
        seen.extend(traces)
        return "it is not pretty."

    verdict = device_check.kernel("conv_backward_bias", bias(ATOMIC), also=also)
    assert not verdict and verdict.text.endswith("The numbers are right, but it is not pretty.")
    assert seen[0].kernel == "total"
    assert device_check.kernel("conv_backward_bias", bias(ATOMIC), also=lambda traces: "")


def test_a_launch_that_ends_early_still_has_its_trace():
    far = SOURCE.replace("db[i / size % F]", "db[1 << 28]")
    exercise = kinds.cuda_c("conv_backward_bias", launch, "a hint")(lambda: far)
    [trace] = exercise.traces(exercise.model())
    assert any(fault.kind == "out of bounds" for fault in trace.faults())
