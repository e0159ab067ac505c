"""The exercises of lesson 00."""

from cnnlab.check import kinds


@kinds.number(
    "Each layer has weights and biases: six arrays in all. Have you counted all six?",
    "Filters: 6 · 1 · 5 · 5 weights, 6 biases. Pooling: a kernel of 4 × 4 and a bias for each of "
    "six maps. The last layer: a weight for each of 216 inputs, for each of 10 outputs; 10 biases.",
)
def parameters():
    """2,160 of them belong to the last layer's weights."""
    return (6 * 1 * 5 * 5 + 6) + (6 * 4 * 4 + 6) + (10 * 216 + 10)


@kinds.number(
    "60,000 is not a multiple of 64. What happens to the images left over?",
    "937 batches are full. The last batch holds the rest, and it is a step, too.",
)
def steps():
    """937 full batches, and one with the 32 images left over."""
    return -(-60_000 // 64)


@kinds.kernel(
    "dense_backward_bias",
    "The verdict names a factor: by what does it differ from shape to shape?",
    "A mean is the sum, divided by the number of images. The formula does not divide. And a kernel "
    "returns nothing: it writes into its last argument, db[:] = …",
)
def bias_gradient(dz, db):
    """The slice writes into the array that db names; `db = …` would only give a name to another."""
    db[:] = dz.sum(axis=0)
