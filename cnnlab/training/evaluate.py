"""What trained parameters are worth: predictions and accuracy."""

import numpy as np

from cnnlab.kernels import Strategy, find
from cnnlab.kernels.composition import forward
from cnnlab.network import Parameters


def predict(
    kernels: str | Strategy, params: Parameters, images: np.ndarray, batch: int = 256
) -> np.ndarray:
    """Most likely class, int64 (N,), of each image (N,C,H,W); N > 0, else ValueError."""
    strategy, last = find(kernels), params.network.places[-1].name
    classes = [
        forward(strategy, params, images[first : first + batch].astype(strategy.dtype))[last]
        for first in range(0, max(1, len(images)), batch)
    ]
    return np.concatenate(classes).argmax(1)


def accuracy(
    kernels: str | Strategy, params: Parameters, images: np.ndarray, labels: np.ndarray
) -> float:
    """Share of the images (N,C,H,W) that are classified as labelled, between 0 and 1."""
    return float((predict(kernels, params, images) == labels).mean())
