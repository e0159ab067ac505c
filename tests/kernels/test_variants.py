"""Four ways to convolve: right, standing alone, with the memory that they say."""

import inspect
import tracemalloc
from fractions import Fraction

import numba
import numpy as np
import pytest

from cnnlab import check
from cnnlab.check import inputs
from cnnlab.kernels.variants import convolutions
from cnnlab.kernels.variants.convolutions import (
    POINTS,
    WAYS,
    cook_toom,
    cut,
    fold,
    join,
    unfold,
)

OPERATIONS = ["conv_forward", "conv_backward_weights", "conv_backward_input"]
ROUNDING = {"FFT": 1, "Winograd": 100}  # times that of a sum, see `check.try_case`
EVERY = [(name, operation) for name in WAYS for operation in OPERATIONS]
BUFFERS = 2**17  # bytes that NumPy takes now and then, whatever the size


@pytest.mark.parametrize("name, operation", EVERY)
def test_a_way_agrees_with_the_reference(name, operation):
    function, extra = getattr(WAYS[name], operation), ROUNDING.get(name, 0)
    verdict = check.kernel(operation, function, cases=inputs.TRANSFORMED, normwise=extra)
    assert verdict, str(verdict)


@pytest.mark.parametrize("name, operation", [each for each in EVERY if each[0] != "vector"])
@pytest.mark.parametrize("sizes", [(16, 16, 16, 28, 30, 3), (32, 2, 32, 26, 28, 5)])
def test_a_way_needs_the_workspace_that_it_says(name, operation, sizes, monkeypatch):
    if name != "FFT":  # what compiled code allocates is not traced
        for module in (convolutions, convolutions):
            for each, kernel in list(vars(module).items()):
                if isinstance(kernel, numba.core.dispatcher.Dispatcher):
                    monkeypatch.setattr(module, each, traced(kernel))
    arrays = [*inputs.draw(operation, inputs.case("", *sizes)).values()]
    way = WAYS[name]
    getattr(way, operation)(*arrays)  # the matrices are made, and the plans of the transform
    tracemalloc.start()
    getattr(way, operation)(*arrays)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    said = way.workspace(operation, *sizes)
    assert 0.6 * said <= peak <= 1.01 * said + BUFFERS


def traced(kernel):
    """A compiled function whose results are copied, so that they are counted."""

    def call(*arguments):
        made = kernel(*arguments)
        return made if made is None else made.copy()

    return call


@pytest.mark.parametrize("way", ["im2col", "fft", "winograd"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_way_runs_from_its_source_alone(way, operation):
    source, alone = inspect.getsource(convolutions).partition("# --- the four ways")[0], {}
    source = source.replace("from cnnlab.kernels import pixels\n", "")  # for the fourth way
    assert "cnnlab" not in source
    exec(source, alone)
    case = inputs.TRANSFORMED[4]
    assert check.try_case(operation, alone[f"{operation}_{way}"], case, normwise=100)


def test_spectra_come_with_frequencies_first_and_go_back():
    x = np.random.default_rng(0).random((2, 3, 7, 9)).astype(np.float32)
    spectrum = convolutions.spectra(x, (7, 9))
    assert spectrum.shape == (7, 5, 2, 3) and spectrum.dtype == np.complex64
    assert spectrum.flags.c_contiguous  # a BLAS takes them as they are
    np.testing.assert_allclose(spectrum[0, 0], x.sum(axis=(2, 3)), rtol=1e-6)
    np.testing.assert_allclose(convolutions.maps(spectrum, (7, 9)), x, atol=1e-6)


def test_a_column_is_a_window_and_folding_is_its_transpose():
    rng = np.random.default_rng(0)
    x = rng.random((2, 3, 7, 9)).astype(np.float32)
    columns = np.empty((3, 4, 4, 2, 4, 6), np.float32)
    unfold(x, columns)
    for n, p, q in np.ndindex(2, 4, 6):
        window = x[n, :, p : p + 4, q : q + 4]
        np.testing.assert_array_equal(columns[:, :, :, n, p, q], window)
    other, back = rng.random(columns.shape).astype(np.float32), np.empty_like(x)
    fold(other, back)
    np.testing.assert_allclose((back * x).sum(), (other * columns).sum(), rtol=1e-5)


TILES = [(m, r) for r in (1, 2, 3, 4, 5) for m in range(1, 9)]


@pytest.mark.parametrize("m, r", TILES)
def test_the_matrices_are_exact(m, r):
    A, G, B = (np.array(each, dtype=object) for each in cook_toom(m, r))
    assert A.shape == (m + r - 1, m) and G.shape == (m + r - 1, r) and len(B) == m + r - 1
    rng = np.random.default_rng(0)
    x, w = ([Fraction(int(i)) for i in rng.integers(-9, 10, n)] for n in (m + r - 1, r))
    results = A.T @ ((G @ w) * (B @ x))
    assert results.tolist() == [sum(w[k] * x[i + k] for k in range(r)) for i in range(m)]


def test_more_points_than_there_are_are_refused():
    most = len(POINTS) + 2
    cook_toom(most - 3, 3)
    with pytest.raises(ValueError, match=rf"^m \+ r: expected at most {most}, got {most + 1}$"):
        cook_toom(most - 2, 3)


def test_tiles_overlap_by_a_kernel_and_are_zero_beyond_the_edge():
    x = np.random.default_rng(0).random((2, 3, 7, 9)).astype(np.float32)
    tiles = cut(x, 4, 2, 3, 4)
    padded = np.pad(x, ((0, 0), (0, 0), (0, 1), (0, 1)))
    for n, p, q in np.ndindex(2, 3, 4):
        window = padded[n, :, 2 * p : 2 * p + 4, 2 * q : 2 * q + 4]
        np.testing.assert_array_equal(tiles[:, :, :, n, p, q].transpose(2, 0, 1), window)
    z = np.empty_like(x)
    join(cut(x, 2, 2, 4, 5), np.full(3, 0.5, np.float32), z)
    np.testing.assert_array_equal(z, x + np.float32(0.5))
