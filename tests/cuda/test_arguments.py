import numpy as np
import pytest

from cnnlab.cuda.arguments import kernels_of
from cnnlab.cuda.emulator import Emulated
from cnnlab.cuda.emulator.traced import Traced

COPY = """
extern "C" __global__ void copy(const float* a, float* out, int n)
{
    if (threadIdx.x < n) out[threadIdx.x] = 2 * a[threadIdx.x];
}
"""


@pytest.fixture(params=[Emulated, Traced])
def kernels(request):
    return request.param(COPY)


def launch(kernels, a, out, n, block=(32,), grid=(1,), **more):
    kernels.launch("copy", grid, block, a, out, n, **more)


def test_one_array_for_two_arguments_is_changed_in_place(kernels):
    a = np.arange(32, dtype=np.float32)
    launch(kernels, a, a, 32)
    assert np.array_equal(a, 2 * np.arange(32))


def test_arguments_that_overlap_do_so_in_the_kernel(kernels):
    a = np.arange(8, dtype=np.float32)
    launch(kernels, a[:4], a[2:6], 4)  # the threads take turns: each may read what another wrote
    assert a.tolist() == [0, 1, 0, 2, 0, 4, 6, 7]


def test_an_array_of_no_dimension_is_an_array(kernels):
    out = np.zeros((), np.float32)
    launch(kernels, np.array(3, np.float32), out, 1)
    assert out == 6


@pytest.mark.parametrize(
    "n, error, words",
    [
        (np.ones(3, np.float32), TypeError, "n: expected .* type int, got an array of float32"),
        (2.5, TypeError, "n: expected a number of type int, got 2.5"),
        (True, TypeError, "n: expected a number of type int, got True"),
        (2**31, ValueError, "n: expected int, -2147483648 to 2147483647, got 2147483648"),
    ],
)
def test_what_is_no_int_is_refused(kernels, n, error, words):
    a = np.ones(32, np.float32)
    with pytest.raises(error, match=words):
        launch(kernels, a, a, n)
    assert (a == 1).all()


def test_a_number_that_is_no_float_is_refused():
    kernels = Emulated('extern "C" __global__ void k(float* a, float x) { a[0] = x; }')
    a = np.zeros(1, np.float32)
    kernels.launch("k", (1,), (1,), a, 3)
    assert a[0] == 3
    for number in (1e39, -1e39):
        with pytest.raises(
            ValueError, match=r"x: expected float, got -?1e\+39, which is too large"
        ):
            kernels.launch("k", (1,), (1,), a, number)
    kernels.launch("k", (1,), (1,), a, np.inf)
    assert a[0] == np.inf


def test_read_only_arrays_are_not_written(kernels):
    a, out = np.ones(32, np.float32), np.zeros(32, np.float32)
    a.flags.writeable = out.flags.writeable = False
    with pytest.raises(ValueError, match="out: expected an array to write to, got one that is"):
        launch(kernels, a, out, 32)
    out = np.zeros(32, np.float32)
    launch(kernels, a, out, 32)
    assert (out == 2).all()


@pytest.mark.parametrize(
    "sizes, words",
    [
        ({"grid": (1, 70_000)}, "copy: grid.y: expected at most 65535, got 70000"),
        ({"block": (1, 1, 128)}, "copy: block.z: expected at most 64, got 128"),
        ({"grid": (1.5,)}, "expected up to three positive sizes"),
        ({"block": 32.0}, "expected up to three positive sizes"),
        ({"shared": 1.5}, "shared: expected 0 to 49152 bytes"),
        ({"shared": 49153}, "expected 0 to 49152 bytes of shared memory, got 49153"),
        ({"grid": (0,)}, r"expected up to three positive sizes .* got grid \(0,\)"),
        ({"grid": (1, 1, 1, 1)}, "up to three"),
        ({"block": (2048,)}, "at most 1024 threads in a block"),
    ],
)
def test_sizes_that_no_gpu_has_are_refused(kernels, sizes, words):
    a = np.zeros(32, np.float32)
    with pytest.raises(ValueError, match=words):
        launch(kernels, a, a, 0, **sizes)


def test_the_parameters_of_a_source():
    source = """// __global__ void commented(int a)
typedef float real;
using count = unsigned int;
extern "C" __global__ __launch_bounds__(256, 2) void k(const real* __restrict__ a, count n,
    float4 *o, long long z, const float w[], unsigned const char* b, const float (*r)[3]) {}
__global__ void __launch_bounds__(128) nothing(void) {}"""
    result = kernels_of(source)
    assert [tuple(parameter) for parameter in result["k"]] == [
        ("a", "float*", True), ("n", "unsigned", False), ("o", "float4*", False),
        ("z", "long", False), ("w", "float*", True), ("b", "unsigned char*", True),
        ("r", "float*", True),
    ]  # fmt: skip
    assert result["nothing"] == [] and len(result) == 2


def test_vectors_need_whole_ones():
    kernels = Emulated('extern "C" __global__ void k(float4* a) { a[0].y = 5; }')
    a = np.zeros((2, 4), np.float32)
    kernels.launch("k", (1,), (1,), a)
    assert a[0].tolist() == [0, 5, 0, 0]
    with pytest.raises(ValueError, match="a: expected a multiple of 4 elements, got 6"):
        kernels.launch("k", (1,), (1,), np.zeros(6, np.float32))


ROWS = """
__global__ void corner(const float (*a)[3], float (*out)[2][4], int n)
{
    out[1][1][3] = a[1][2] + n;
}
"""


@pytest.mark.parametrize("device", [Emulated, Traced])
def test_a_pointer_to_rows_is_an_array(device):
    a, out = np.arange(6, dtype=np.float32), np.zeros((2, 2, 4), np.float32)
    device(ROWS).launch("corner", (1,), (1,), a, out, 7)
    assert out[1, 1, 3] == 12 and out.sum() == 12
