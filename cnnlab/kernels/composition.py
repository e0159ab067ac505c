"""A training step composed from the operations of the contract: any network, any strategy."""

import numpy as np

from cnnlab.kernels.contract import Strategy, check_array, check_labels
from cnnlab.network import Parameters, Place


def forward(strategy: Strategy, params: Parameters, x: np.ndarray) -> dict[str, np.ndarray]:
    """Run a batch x (N,C,H,W) through the network; the output of every layer, by its name.

    Raises ValueError or TypeError on bad arguments.
    """
    check_batch(strategy, params, x)
    outputs = {}
    for place in params.network.places:
        y = np.empty((len(x), *place.shape), strategy.dtype)
        layer_forward(strategy, place, params.at(place), x, y)
        outputs[place.name] = x = y
    return outputs


def layer_forward(strategy: Strategy, place: Place, weights: tuple, x, y) -> None:
    """One layer: x (N, …) → y (N, …), of the shapes that `place` names."""
    operation, stride = place.layer.operation, place.layer.stride
    if weights:
        strategy.kernel(f"{operation}_forward")(as_input(place, x), *weights, y, *stride)
    elif stride:
        strategy.kernel(f"{operation}_forward")(x, y, *stride)
    else:
        strategy.kernel(operation)(x, y)


def layer_backward(strategy, place, weights, grads, x, y, dy, dx) -> None:
    """One layer, backwards: input x, output y and its gradient dy → dx, and the layer's `grads`.

    A layer without parameters has no `grads`; dx is None where nobody needs it.
    """
    operation, stride = place.layer.operation, place.layer.stride
    if grads:
        strategy.kernel(f"{operation}_backward_weights")(as_input(place, x), dy, grads[0], *stride)
        strategy.kernel(f"{operation}_backward_bias")(dy, grads[1])
    if dx is None:
        return
    if weights:
        backward_input = strategy.kernel(f"{operation}_backward_input")
        backward_input(dy, weights[0], as_input(place, dx), *stride)
    elif stride:
        strategy.kernel(f"{operation}_backward")(x, dy, dx, *stride)
    else:
        strategy.kernel(f"{operation}_backward")(y, dy, dx)


def as_input(place: Place, x: np.ndarray) -> np.ndarray:
    """A layer's input as its operation takes it: rows (N,D) for a fully connected layer."""
    return x.reshape(len(x), -1) if place.layer.operation == "dense" else x


def composed(strategy, params, x, labels, grads) -> float:
    """`loss_and_gradients`, an operation of the contract after the other, without the checks."""
    places, first = params.network.places, params.network.first_learned
    outputs = [x, *forward(strategy, params, x).values()]
    dy = np.empty_like(outputs[-1])  # of the loss, with respect to the last preactivation
    loss = strategy.kernel("cross_entropy")(outputs[-1], labels, dy)
    for i in reversed(range(first, len(places) - 1)):
        place, dx = places[i], np.empty_like(outputs[i]) if i > first else None
        learned = grads.at(place) if place.layer.parameter_shapes(place.input_shape) else ()
        around = outputs[i], outputs[i + 1], dy, dx
        layer_backward(strategy, place, params.at(place), learned, *around)
        dy = dx
    return float(loss)


def loss_and_gradients(
    strategy: Strategy, params: Parameters, x: np.ndarray, labels: np.ndarray, grads: Parameters
) -> float:
    """Loss of a batch x (N,C,H,W) with int64 labels (N), and its gradients written to `grads`.

    Loss and gradients are summed over the batch. A strategy that fuses the whole step for this form
    of network is asked for that; for the others it is composed. Raises ValueError or TypeError on
    bad arguments.
    """
    check_step(strategy, params, x, labels, grads)
    with strategy.lock:
        return fused_or_composed(strategy, params, x, labels, grads)


def fused_or_composed(strategy, params, images, labels, grads, chosen=None) -> float:
    """`loss_and_gradients` of the images number `chosen`, or all, without checks and lock."""
    if fused := strategy.fused("loss_and_gradients", params.network):
        return float(fused(params, images, labels, grads, chosen))
    if chosen is not None:
        images, labels = strategy.take(images, chosen), labels[chosen]
    return composed(strategy, params, images, labels, grads)


def check_step(strategy, params, x, labels, grads) -> None:
    """Check images, their labels, parameters and the place for their gradients."""
    check_batch(strategy, params, x)
    check_array("labels", labels, np.int64)
    if labels.shape != x.shape[:1]:
        wanted = f"shape {x.shape[:1]}, one for each image"
        raise ValueError(f"labels: expected {wanted}, got {labels.shape}")
    check_labels(labels, params.network.classes)
    check_parameters("grads", grads)
    like = grads.network is params.network or grads.network == params.network
    if not like or grads.flat.dtype != params.flat.dtype:
        raise ValueError(
            f"grads: expected Parameters like params, {params.network} in {params.flat.dtype}, "
            f"got {grads.network} in {grads.flat.dtype}"
        )
    if grads is params or not all(array.flags.writeable for array in grads):
        got = "params" if grads is params else "a read-only array"
        raise ValueError(f"grads: expected writeable arrays other than those of params, got {got}")


def check_batch(strategy: Strategy, params: Parameters, x: np.ndarray) -> None:
    """Check that a batch and the parameters fit each other and the strategy."""
    check_parameters("params", params)
    check_array("x", x, strategy.dtype)
    if params.flat.dtype != strategy.dtype:
        raise TypeError(f"params: expected dtype {strategy.dtype}, got {params.flat.dtype}")
    if x.ndim != 4 or x.shape[1:] != params.network.image_shape or len(x) == 0:
        wanted = f"(N, *{params.network.image_shape}), N > 0"
        raise ValueError(f"x: expected shape {wanted}, got {x.shape}")


def check_parameters(argument: str, value) -> None:
    """Check that a value is Parameters."""
    if not isinstance(value, Parameters):
        got = type(value).__name__
        raise TypeError(f"{argument}: expected Parameters, as a Network makes them, got {got}")
