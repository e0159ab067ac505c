import copy

import numpy as np
import pytest

from cnnlab.check import inputs
from cnnlab.kernels import CONTRACT, KERNELS
from cnnlab.kernels.contract import STRIDES
from cnnlab.runtime import thread_pool

LOOPS = KERNELS["loops"]


def arguments(**changed):
    arrays = {
        "x": np.ones((2, 3, 7, 9), np.float32),
        "w": np.ones((4, 3, 3, 3), np.float32),
        "b": np.ones(4, np.float32),
        "z": np.empty((2, 4, 3, 4), np.float32),
    }
    return [*(arrays | changed).values()]


def test_the_stride_may_be_given_by_position_or_by_name_and_arrays_by_position_only():
    x, w, b, z = arguments()
    LOOPS.conv_forward(x, w, b, z, 2)
    assert (z == 28).all()
    with pytest.raises(ValueError, match="z: expected P="):
        LOOPS.conv_forward(x, w, b, z, 3)
    with pytest.raises(
        TypeError, match=r"conv_forward: expected its arrays \(x, w.* got z by name"
    ):
        LOOPS.conv_forward(x, w, b, z=z)
    with pytest.raises(TypeError, match=r"sigmoid: expected 2 arrays \(z, y\), got 3"):
        LOOPS.sigmoid(x, x, 2)


WRONG = {
    "a list": (lambda a: a.tolist(), TypeError, "expected a NumPy array of"),
    "another dtype": (lambda a: a.astype(complex), TypeError, "expected dtype"),
    "every second": (
        lambda a: a.repeat(2, -1)[..., ::2],
        ValueError,
        "expected a C-contiguous array",
    ),
    "one dimension more": (lambda a: a[None], ValueError, "expected"),
    "empty": (lambda a: a[:0], ValueError, "expected"),
    "one short": (lambda a: np.delete(a, 0, min(1, a.ndim - 1)), ValueError, "expected"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("operation, name", [(o, name) for o in CONTRACT for name in CONTRACT[o]])
def test_every_argument_of_every_operation_is_checked_before_anything_is_written(
    operation, name, wrong
):
    spoil, error, message = WRONG[wrong]
    case = inputs.case("", n=2, c=3, f=4, h=6, w=9, k=3).suited(operation)
    options = {"stride": case.stride} if operation in STRIDES else {}
    arrays = inputs.draw(operation, case)
    output = list(arrays.values())[-1]
    blamed = name if wrong in ("a list", "another dtype", "every second") else "."
    with pytest.raises(error, match=f"^{operation}: {blamed}.* {message}.*, got "):
        getattr(LOOPS, operation)(*(arrays | {name: spoil(arrays[name])}).values(), **options)
    assert np.isnan(output).all()
    getattr(LOOPS, operation)(*arrays.values(), **options)
    assert not np.isnan(output).any()


def test_the_reference_wants_float64():
    with pytest.raises(TypeError, match="x: expected dtype float64, got float32"):
        KERNELS["reference"].conv_forward(*arguments(), stride=2)


@pytest.mark.parametrize(
    "changed, error, message",
    [
        ({"w": np.ones((4, 2, 3, 3), np.float32)}, ValueError, "w: expected C=3 as in x"),
        ({"w": np.ones((4, 3, 3, 2), np.float32)}, ValueError, "w: expected K=3 as in w"),
        ({"w": np.ones((4, 3, 8, 8), np.float32)}, ValueError, "x: expected H of at least K=8"),
        ({"b": np.ones(5, np.float32)}, ValueError, "b: expected F=4 as in w"),
        ({"z": np.empty((2, 4, 3, 3), np.float32)}, ValueError, r"z: expected Q=.*=4 .* got 3"),
        ({"z": np.empty((2, 4, 4, 4), np.float32)}, ValueError, r"z: expected P=.*=3 .* got 4"),
    ],
)
def test_a_wrong_array_is_named_with_what_was_expected_and_what_came(changed, error, message):
    with pytest.raises(error, match=f"conv_forward: {message}"):
        LOOPS.conv_forward(*arguments(**changed), stride=2)


@pytest.mark.parametrize(
    "shape, stride, message",
    [
        ((2, 3, 2, 3), 3, r"z: expected P=H//stride=3 for H=9, stride=3, got 2"),
        ((2, 3, 3, 4), 3, r"z: expected Q=W//stride=3 for W=11, stride=3, got 4"),
        ((2, 3, 1, 1), 10, r"x: expected H of at least stride=10, got 9"),
        ((2, 3, 9, 11), None, r"z: expected P=H//stride=2 for H=9, stride=4, got 9"),
    ],
)
def test_windows_as_large_as_the_stride_are_counted_without_a_kernel(shape, stride, message):
    x, z = np.ones((2, 3, 9, 11), np.float32), np.empty(shape, np.float32)
    options = {} if stride is None else {"stride": stride}
    for operation, arrays in (
        ("max_pool_forward", (x, z)),
        ("max_pool_backward", (x, z, x.copy())),
    ):
        with pytest.raises(ValueError, match=f"^{operation}: d?{message}"):
            getattr(LOOPS, operation)(*arrays, **options)


def test_an_output_that_cannot_be_written_is_named():
    z = np.empty((2, 4, 3, 4), np.float32)
    z.flags.writeable = False
    with pytest.raises(ValueError, match="z: expected a writeable array"):
        LOOPS.conv_forward(*arguments(z=z), stride=2)


@pytest.mark.parametrize("stride", [0, -1, 1.5, "2"])
def test_an_impossible_stride_is_named(stride):
    with pytest.raises(ValueError, match=f"stride: expected a whole number .* got {stride!r}"):
        LOOPS.conv_forward(*arguments(), stride=stride)


def test_a_stride_where_there_is_none_and_missing_arrays():
    y = np.ones((2, 3), np.float32)
    with pytest.raises(TypeError, match="sigmoid: expected no stride"):
        LOOPS.sigmoid(y, y.copy(), stride=2)
    with pytest.raises(TypeError, match=r"sigmoid: expected 2 arrays \(z, y\), got 1"):
        LOOPS.sigmoid(y)
    with pytest.raises(ValueError, match=r"y: expected the shape of z, \(2, 3\), got \(3, 2\)"):
        LOOPS.sigmoid(y, y.reshape(3, 2))


@pytest.mark.parametrize("label", [-1, 3])
def test_a_label_out_of_range_is_named(label):
    y = np.full((2, 3), 0.5, np.float32)
    with pytest.raises(ValueError, match=rf"labels: expected 0..2, got {label} at position 1"):
        LOOPS.cross_entropy(y, np.array([0, label]), y.copy())
    with pytest.raises(TypeError, match="labels: expected dtype int64, got int32"):
        LOOPS.cross_entropy(y, np.array([0, 1], np.int32), y.copy())


def test_a_strategy_can_be_copied():
    assert copy.copy(LOOPS).kernel("sigmoid") is LOOPS.kernel("sigmoid")


def test_a_strategy_knows_what_it_has():
    with pytest.raises(AttributeError, match="'loops' has no 'conv'; it has conv_forward"):
        _ = LOOPS.conv
    for strategy in KERNELS.values():
        for operation in CONTRACT:
            assert callable(strategy.kernel(operation)) and callable(getattr(strategy, operation))


@pytest.mark.parametrize("name", ["reference", "loops", "vector", "threads"])
@pytest.mark.parametrize("n", [0, 1, 5, 16, 33, 64])
def test_a_batch_is_a_copy_of_the_chosen_images(name, n):
    images = np.random.default_rng(0).random((40, 2, 5, 3), np.float32)
    chosen = np.random.default_rng(1).integers(0, 40, n)
    for n_threads in (1, min(2, thread_pool.size())):
        with thread_pool.threads(n_threads):
            x = KERNELS[name].take(images, chosen)
        assert x.dtype == KERNELS[name].dtype and not np.shares_memory(x, images)
        assert np.array_equal(x, images[chosen])
