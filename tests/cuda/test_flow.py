"""What launches pass on: the last writer's, and only what is read before it is written."""

import numpy as np
import pytest

from cnnlab import cuda
from cnnlab.cuda.emulator.traced import Traced
from cnnlab.cuda.step import Layerwise
from cnnlab.lessons.lesson_33 import Passed, levels, passed_on
from tests.cuda.examples import NET, digits

SOURCE = """
extern "C" __global__ void copy(const float* from, float* to)
{
    to[threadIdx.x] = from[threadIdx.x];
}
extern "C" __global__ void twice(float* a) { a[threadIdx.x] = 1; a[threadIdx.x] *= 2; }
extern "C" __global__ void count(float* a) { atomicAdd(&a[0], 1); }
"""


def passed(*launches):
    kernels = Traced(SOURCE, traces := [])
    for name, threads, *arrays in launches:
        kernels.launch(name, (1,), (threads,), *arrays)
    return passed_on(traces)


def test_the_last_writer_of_each_element_gives_it():
    a, b, c = (np.zeros(8, np.float32) for _ in range(3))
    result = passed(("copy", 8, a, b), ("copy", 2, a, b[4:]), ("copy", 8, b, c))
    assert result == [Passed(0, 2, "to", 24), Passed(1, 2, "to", 8)]
    assert not passed(("copy", 4, a, b), ("copy", 4, b[4:], c)), "the other half of b"


def test_who_writes_first_needs_nothing_and_an_atomic_needs_what_was_there():
    a, b = np.zeros(8, np.float32), np.zeros(8, np.float32)
    assert not passed(("copy", 8, b, a), ("twice", 8, a))
    assert passed(("copy", 8, b, a), ("count", 2, a)) == [Passed(0, 1, "to", 4)]


def test_levels_count_the_launches_before():
    algorithms = [
        Passed(0, 1, "a", 4),
        Passed(0, 2, "a", 4),
        Passed(2, 3, "b", 4),
        Passed(0, 3, "a", 4),
    ]
    assert levels(5, algorithms) == [0, 1, 1, 2, 0]


@pytest.mark.parametrize("fused, depth", [(True, 8), (False, 14)])
def test_launches_of_a_stage_stand_on_one_level(fused, depth):
    with cuda.traced() as traces:
        step = Layerwise(NET.parameters(seed=1), *digits(), batch=2, fused=fused)
        step()
    result = levels(len(traces), passed_on(traces))
    assert 1 + max(result) == depth
    if fused:
        stages = [number for number, stage in enumerate(step.stages) for _ in stage]
        assert result == stages
