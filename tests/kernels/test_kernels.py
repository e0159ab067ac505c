import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as draw

from cnnlab import check
from cnnlab.check import inputs
from cnnlab.kernels import CONTRACT, KERNELS, reference
from tests.programs import run

FAST = [name for name in KERNELS if name != "reference"]


@pytest.mark.parametrize("operation", CONTRACT)
@pytest.mark.parametrize("name", FAST)
def test_a_strategy_agrees_with_the_reference_on_awkward_shapes(name, operation):
    verdict = check.kernel(operation, KERNELS[name].kernel(operation), repeats=2)
    assert verdict, str(verdict)


sizes = draw.fixed_dictionaries(
    {letter: draw.integers(1, 7) for letter in "NCFK"}
    | {"H": draw.integers(0, 9), "W": draw.integers(0, 9), "stride": draw.integers(1, 4)}
    | {"D": draw.integers(1, 40), "O": draw.integers(1, 12)}
)


@pytest.mark.parametrize("name", FAST)
@settings(max_examples=12)
@given(sizes)
def test_a_strategy_agrees_with_the_reference_on_any_shape(name, drawn):
    stride = drawn.pop("stride")
    smallest = max(drawn["K"], stride)  # windows as large as their stride have to fit, too
    shape = drawn | {"H": drawn["H"] + smallest, "W": drawn["W"] + smallest}
    for operation in CONTRACT:
        case = inputs.Case("drawn", shape, stride)
        verdict = check.try_case(operation, KERNELS[name].kernel(operation), case)
        assert verdict, f"{operation}: {verdict}"


def slopes(loss, array, h=1e-5):
    """Central differences of loss() at every element of a float64 array."""
    result = np.empty_like(array)
    for i in np.ndindex(array.shape):
        kept = array[i]
        array[i] = kept + h
        above = loss()
        array[i] = kept - h
        result[i] = (above - loss()) / (2 * h)
        array[i] = kept
    return result


def test_the_references_forward_passes_are_the_formulas():
    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=(2, 3, 7, 10)), rng.normal(size=(4, 3, 3, 3)), rng.normal(size=4)
    conv, pool, dense = np.empty((2, 4, 3, 4)), np.empty((2, 3, 2, 3)), np.empty((7, 4))
    reference.conv_forward(x, w, b, conv, 2)
    reference.pool_forward(x, w[0], b[:3], pool, 3)
    reference.dense_forward(x[0, 0], w.reshape(4, 27)[:, :10], b, dense)
    for n, f, p, q in np.ndindex(conv.shape):
        window = x[n, :, 2 * p : 2 * p + 3, 2 * q : 2 * q + 3]
        assert conv[n, f, p, q] == pytest.approx(b[f] + (w[f] * window).sum(), rel=1e-12)
    for n, c, p, q in np.ndindex(pool.shape):
        window = x[n, c, 3 * p : 3 * p + 3, 3 * q : 3 * q + 3]
        assert pool[n, c, p, q] == pytest.approx(b[c] + (w[0, c] * window).sum(), rel=1e-12)
    for n, o in np.ndindex(dense.shape):
        terms = [w.reshape(4, 27)[o, i] * x[0, 0, n, i] for i in range(10)]
        assert dense[n, o] == pytest.approx(b[o] + sum(terms), rel=1e-12)


LAYERS = {  # x, w, z for the case N=2, C=2, F=3, H=7, W=10, K=3, and D=5, O=4
    "conv": ((2, 2, 7, 10), (3, 2, 3, 3), {1: (2, 3, 5, 8), 2: (2, 3, 3, 4), 3: (2, 3, 2, 3)}),
    "pool": ((2, 3, 7, 10), (3, 3, 3), {1: (2, 3, 5, 8), 3: (2, 3, 2, 3), 4: (2, 3, 2, 2)}),
    "dense": ((2, 5), (4, 5), {None: (2, 4)}),
}
RUNS = [(layer, stride) for layer, (_, _, zs) in LAYERS.items() for stride in zs]


@pytest.mark.parametrize("layer, stride", RUNS)
def test_the_references_gradients_are_slopes(layer, stride):
    x_shape, w_shape, z_shapes = LAYERS[layer]
    options = {} if stride is None else {"stride": stride}
    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=x_shape), rng.normal(size=w_shape), rng.normal(size=w_shape[0])
    dz = rng.normal(size=z_shapes[stride])

    def loss():
        z = np.empty_like(dz)
        getattr(reference, f"{layer}_forward")(x, w, b, z, **options)
        return (z * dz).sum()

    dx, dw, db = np.empty_like(x), np.empty_like(w), np.empty_like(b)
    getattr(reference, f"{layer}_backward_input")(dz, w, dx, **options)
    getattr(reference, f"{layer}_backward_weights")(x, dz, dw, **options)
    getattr(reference, f"{layer}_backward_bias")(dz, db)
    for array, gradient in ((x, dx), (w, dw), (b, db)):
        np.testing.assert_allclose(gradient, slopes(loss, array), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_the_references_maxima_are_those_of_the_windows_and_their_gradients_slopes(stride):
    rng = np.random.default_rng(0)
    x = rng.permutation(2 * 3 * 7 * 10).reshape(2, 3, 7, 10) / 100  # none equal, none near another
    z = np.empty((2, 3, 7 // stride, 10 // stride))
    dz, dx = rng.normal(size=z.shape), np.empty_like(x)

    def loss():
        reference.max_pool_forward(x, z, stride)
        return (z * dz).sum()

    reference.max_pool_backward(x, dz, dx, stride)
    np.testing.assert_allclose(dx, slopes(loss, x), rtol=1e-6, atol=1e-8)
    loss()
    for n, c, p, q in np.ndindex(z.shape):
        i, j = p * stride, q * stride
        assert z[n, c, p, q] == x[n, c, i : i + stride, j : j + stride].max()


@pytest.mark.parametrize("name", KERNELS)
def test_the_first_of_equals_gets_the_gradient_row_by_row(name):
    strategy = KERNELS[name]
    x = np.array([[-2, -1, 5, 5, 9], [-1, -1, 5, 5, 9], [9, 9, 9, 9, 9]], strategy.dtype)[
        None, None
    ]
    z, dx = np.empty((1, 1, 1, 2), strategy.dtype), np.empty_like(x)
    strategy.max_pool_forward(x, z, 2)
    assert z.tolist() == [[[[-1, 5]]]]
    strategy.max_pool_backward(x, np.array([[[[3, 4]]]], strategy.dtype), dx, 2)
    assert dx.tolist() == [[[[0, 3, 4, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]]]


@pytest.mark.parametrize("name", KERNELS)
def test_a_window_with_a_nan_has_no_maximum_and_its_first_nan_gets_the_gradient(name):
    strategy, nan = KERNELS[name], np.nan
    x = np.array([[1, 2, 9, nan, 1, 1], [nan, nan, 3, 9, 7, 7]], strategy.dtype)[None, None]
    z, dx = np.empty((1, 1, 1, 3), strategy.dtype), np.empty_like(x)
    strategy.max_pool_forward(x, z, 2)
    np.testing.assert_array_equal(z.ravel(), [nan, nan, 7])
    strategy.max_pool_backward(x, np.array([[[[3, 4, nan]]]], strategy.dtype), dx, 2)
    np.testing.assert_array_equal(dx[0, 0], [[0, 0, 0, 4, 0, 0], [3, 0, 0, 0, nan, 0]])


@pytest.mark.parametrize("name", KERNELS)
def test_relu_of_nan_is_nan_and_its_gradient_passes(name):
    dtype, nan = KERNELS[name].dtype, np.nan
    z = np.tile(np.array([nan, -np.inf, -1e-37, -0.0, 0, 1e-37, 2, np.inf], dtype), 5)
    y, dz = np.empty_like(z), np.empty_like(z)
    KERNELS[name].relu(z, y)
    np.testing.assert_array_equal(y, np.where(z <= 0, 0, z))
    KERNELS[name].relu_backward(y, np.full_like(z, np.nan), dz)
    np.testing.assert_array_equal(dz, np.tile([nan, 0, 0, 0, 0, nan, nan, nan], 5))
    KERNELS[name].relu_backward(y, np.full_like(z, 3), dz)
    np.testing.assert_array_equal(dz, np.tile([3, 0, 0, 0, 0, 3, 3, 3], 5))


def test_loss_and_sigmoid_have_the_values_of_their_formulas():
    y, dz = np.array([[0.25, 0.5, 0.9]]), np.empty((1, 3))
    loss = reference.cross_entropy(y, np.array([1]), dz)
    assert loss == pytest.approx(-np.log(0.75) - np.log(0.5) - np.log(0.1), rel=1e-14)
    assert dz.tolist() == [[0.25, -0.5, 0.9]]
    z = np.array([-2.0, 0.0, np.log(3)])
    reference.sigmoid(z.copy(), z)
    np.testing.assert_allclose(z, [1 / (1 + np.exp(2)), 0.5, 0.75], rtol=1e-15)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(
    "y, losses",  # where the label names the output, and where not, in units of ln 2
    [
        (0, (24, 0)),
        (1e-40, (24, 0)),
        (1e-30, (24, 0)),
        (2.0**-25, (24, 0)),
        (2.0**-24, (24, 0)),
        (2.0**-23, (23, 0)),
        (0.5, (1, 1)),
        (1 - 2.0**-23, (0, 23)),
        (1 - 2.0**-24, (0, 24)),
        (1, (0, 24)),
        (np.nan, (np.nan, np.nan)),
    ],
)
def test_a_saturated_output_costs_24_ln_2_and_not_infinity(name, y, losses):
    strategy = KERNELS[name]
    for label, loss in zip((0, 1), losses, strict=True):
        outputs = np.array([[y, 0.25]], strategy.dtype)
        dz = np.empty_like(outputs)
        result = strategy.cross_entropy(outputs, np.array([label]), dz)
        result -= -np.log(0.75) if label == 0 else -np.log(0.25)  # of the other output
        assert result / np.log(2) == pytest.approx(loss, abs=1e-5, nan_ok=True)
        onehot = [1, 0] if label == 0 else [0, 1]
        np.testing.assert_array_equal(dz[0], outputs[0] - np.array(onehot, strategy.dtype))


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("n", [1, 7, 16, 40, 5000])
def test_the_sigmoid_of_nan_is_nan_wherever_it_is(name, n):
    z = np.random.default_rng(0).normal(size=n).astype(np.float32)
    y = np.empty_like(z)
    for i in {0, n // 2, n - 1}:
        z[i] = np.nan
        KERNELS[name].sigmoid(z, y)
        np.testing.assert_array_equal(np.isnan(y), np.isnan(z))


def test_the_widest_vectors_are_used_even_if_something_else_was_compiled_before():
    """Once, measuring the machine first left `vector` with half the width."""
    program = """
import llvmlite.binding
from cnnlab.measure import machine
machine._triad.compile("(float32[::1], float32[::1], float32[::1], float32)")
from cnnlab.kernels import vector
vector.sigmoid.compile("(float32[::1], float32[::1])")
(code,) = vector.sigmoid.inspect_asm().values()
wide = llvmlite.binding.get_host_cpu_features().get("avx512f")
assert not wide or code.count("zmm") > 20, code.count("zmm")
"""
    run(program)
