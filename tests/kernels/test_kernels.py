import builtins
import dis
import inspect

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as draw

from cnnlab import check
from cnnlab.kernels import CONTRACT, KERNELS, batch_innermost, reference

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
@settings(max_examples=12, deadline=None)
@given(sizes)
def test_a_strategy_agrees_with_the_reference_on_any_shape(name, drawn):
    stride = drawn.pop("stride")
    shape = drawn | {"H": drawn["H"] + drawn["K"], "W": drawn["W"] + drawn["K"]}
    for operation in CONTRACT:
        case = check.Case("drawn", shape, stride)
        verdict = check.try_case(operation, KERNELS[name].kernel(operation), case)
        assert verdict, f"{operation}: {verdict}"


def slopes(loss, array, h=1e-5):
    """Central differences of loss() at every element of a float64 array."""
    found = np.empty_like(array)
    for i in np.ndindex(array.shape):
        kept = array[i]
        array[i] = kept + h
        above = loss()
        array[i] = kept - h
        found[i] = (above - loss()) / (2 * h)
        array[i] = kept
    return found


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


def test_the_references_sigmoid_and_loss_have_the_right_slopes():
    rng = np.random.default_rng(0)
    z, dy, labels = rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), np.array([0, 3, 1])

    def y():
        out = np.empty_like(z)
        reference.sigmoid(z, out)
        return out

    dz = np.empty_like(z)
    reference.sigmoid_backward(y(), dy, dz)
    np.testing.assert_allclose(dz, slopes(lambda: (y() * dy).sum(), z), rtol=1e-6)
    reference.cross_entropy(y(), labels, dz)
    loss = lambda: reference.cross_entropy(y(), labels, np.empty_like(z))  # noqa: E731
    np.testing.assert_allclose(dz, slopes(loss, z), rtol=1e-6)


def test_the_sigmoid_is_right_to_the_ends_of_float32():
    z = np.array([-3e38, -1000, -88, -87, -20, -1, -0.0, 0, 1, 20, 88, 1000, 3e38], np.float32)
    for name in FAST:
        y, exact = np.empty_like(z), np.empty(z.size)
        KERNELS[name].sigmoid(z, y)
        reference.sigmoid(z.astype(np.float64), exact)
        np.testing.assert_allclose(y, exact, rtol=1e-6, atol=2e-38, err_msg=name)


def test_a_saturated_sigmoid_costs_69_and_not_infinity():
    for strategy in KERNELS.values():
        y = np.array([[0.0, 1.0]], strategy.dtype)
        loss = strategy.cross_entropy(y, np.array([0]), np.empty_like(y))
        assert loss == pytest.approx(2 * 30 * np.log(10), rel=1e-6)


# --- kernels to paste -----------------------------------------------------------------------------

# These call other kernels, so they need the module around them.
COMPOSED = {"loss_and_gradients", "few_images", "many_images"}


def public(module):
    return {
        name: function
        for name, function in vars(module).items()
        if isinstance(function, numba.core.registry.CPUDispatcher)
        and function.py_func.__module__ == module.__name__
        and name not in COMPOSED
    }


@pytest.mark.parametrize("name", FAST)
def test_every_kernel_runs_from_its_source_alone(name):
    kernels = public(KERNELS[name].module)
    assert set(CONTRACT) <= set(kernels)
    for operation in CONTRACT:
        alone = {"np": np, "numba": numba}
        exec(inspect.getsource(kernels[operation].py_func), alone)
        case = check.CASES[-1]
        verdict = check.try_case(operation, alone[operation].py_func, case)
        assert verdict, f"{operation}: {verdict}"
        used = set(alone[operation].py_func.__code__.co_names)
        assert not used & set(kernels), f"{operation} uses {used & set(kernels)}"


def test_the_kernels_of_a_block_use_nothing_but_numpy_and_numba():
    for name, kernel in public(batch_innermost).items():
        code = dis.get_instructions(kernel.py_func)
        used = {step.argval for step in code if step.opname == "LOAD_GLOBAL"}
        assert used <= {"np", "numba", *dir(builtins)}, f"{name} uses {used}"
