"""A training step composed from the operations of the contract: any network, any strategy."""

import numpy as np

from cnnlab.kernels.contract import Strategy, check_array, check_labels
from cnnlab.network import Network, Parameters, Place
from cnnlab.network.layers import Moving


def forward(strategy: Strategy, params: Parameters, x: np.ndarray) -> dict[str, np.ndarray]:
    """Run a batch x (N,C,H,W) through the network; the output of every layer, by its name.

    Raises ValueError or TypeError on bad arguments.
    """
    check_batch(strategy, params, x)
    outputs = [x]  # at last: source −1 is the image
    for place in params.network.places:
        y, inputs = np.empty((len(x), *place.shape), strategy.dtype), sources(place, outputs)
        layer_forward(strategy, place, params.at(place), inputs, y)
        outputs.insert(-1, y)
    return dict(zip((p.name for p in params.network.places), outputs, strict=False))


def sources(place: Place, arrays: list) -> list:
    """What belongs to the sources of a layer, of a list for all layers and, at last, the image."""
    return [arrays[source] for source in place.sources]


def layer_forward(strategy: Strategy, place: Place, weights: tuple, inputs: list, y) -> None:
    """One layer: its inputs (N, …), mostly one → y (N, …), of the shapes that `place` names."""
    layer, x = place.layer, inputs[0]
    operation, arguments = layer.operation, layer.arguments
    if isinstance(layer, Moving):
        layer.move(inputs, y)
    elif weights:
        strategy.kernel(f"{operation}_forward")(as_input(place, x), *weights, y, *arguments)
    elif arguments:
        strategy.kernel(f"{operation}_forward")(layer.apart(x), y, *arguments)
    else:
        strategy.kernel(operation)(x, y)


def layer_backward(strategy, place, weights, grads, inputs, y, dy, inner) -> None:
    """One layer, backwards: inputs, output y and its gradient dy → `inner`, the layer's `grads`.

    A layer without parameters has no `grads`. `inner` are the inputs' gradients, None: not needed.
    """
    layer, x, dx = place.layer, inputs[0], inner[0]
    operation, arguments = layer.operation, layer.arguments
    if grads:
        backward_weights = strategy.kernel(f"{operation}_backward_weights")
        backward_weights(as_input(place, x), dy, grads[0], *arguments)
        strategy.kernel(f"{operation}_backward_bias")(dy, grads[1])
    if isinstance(layer, Moving):
        layer.move_back(inputs, dy, inner)
    elif dx is None:
        return
    elif weights:
        backward_input = strategy.kernel(f"{operation}_backward_input")
        backward_input(dy, weights[0], as_input(place, dx), *arguments)
    elif arguments:
        x = layer.apart(x)
        apart = dx if layer.side_by_side else np.empty_like(x)
        strategy.kernel(f"{operation}_backward")(x, dy, apart, *arguments)
        layer.together(apart, dx)
    else:
        strategy.kernel(f"{operation}_backward")(y, dy, dx)


def as_input(place: Place, x: np.ndarray) -> np.ndarray:
    """A layer's input as its operation takes it: rows (N,D) for a fully connected layer."""
    return x.reshape(len(x), -1) if place.layer.operation == "dense" else x


def composed(strategy, params, x, labels, grads) -> float:
    """`loss_and_gradients`, an operation of the contract after the other, without the checks."""
    outputs = [*forward(strategy, params, x).values(), x]  # source −1 is the image
    dy = np.empty_like(outputs[-2])  # of the loss, with respect to the last preactivation
    loss = strategy.kernel("cross_entropy")(outputs[-2], labels, dy)
    for _, place, *around in backwards(params.network, outputs, dy):
        learned = grads.at(place) if place.layer.parameter_shapes(place.input_shape) else ()
        layer_backward(strategy, place, params.at(place), learned, *around)
    return float(loss)


def backwards(network: Network, outputs: list[np.ndarray], dy: np.ndarray):
    """Each layer that learns, from the last but one to the first: its number, place, and arrays.

    These are its inputs, its output y, that one's gradient dy, and room for those of the inputs,
    see `layer_backward`, which the caller fills before going on: where an output is used twice,
    its gradients add. `outputs` are those of all layers, and at last the images.
    """
    gradients = {len(network.places) - 2: dy}
    for i in reversed(range(len(network.places) - 1)):
        if network.learning[i]:
            place = network.places[i]
            inputs, needed = sources(place, outputs), sources(place, network.learning)
            inner = [np.empty_like(x) if n else None for x, n in zip(inputs, needed, strict=True)]
            yield i, place, inputs, outputs[i], gradients.pop(i), inner
            for source, dx in zip(place.sources, inner, strict=True):
                if source in gradients:
                    gradients[source] += dx
                elif dx is not None:
                    gradients[source] = dx


def loss_and_gradients(
    strategy: Strategy, params: Parameters, x: np.ndarray, labels: np.ndarray, grads: Parameters
) -> float:
    """Loss of a batch x (N,C,H,W) with int64 labels (N), and its gradients written to `grads`.

    Loss and gradients are summed over the batch. A strategy that fuses this network's whole step is
    asked for that; for the others it is composed. Raises ValueError or TypeError on bad arguments.
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
