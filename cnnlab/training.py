"""Training: mini-batch stochastic gradient descent, the same for every strategy."""

import numbers
import time
from dataclasses import dataclass, field

import numpy as np
from tqdm import tqdm

from cnnlab import pool
from cnnlab.kernels import KERNELS
from cnnlab.kernels.contract import Strategy
from cnnlab.network import Network, Parameters, forward, loss_and_gradients

# Chosen on MNIST, where lesson 04 shows the choice: small batches take more steps an epoch, and up
# to this rate the loss still falls smoothly.
BATCH, RATE = 16, 0.4


@dataclass
class Training:
    """What a training leaves: the parameters and, for each epoch, one row of history.

    A row holds `epoch`, `loss` (mean per image, while training), `test_accuracy`, `seconds` and
    `images_per_second`; time counts the training steps alone, compiled before the clock starts.
    """

    params: Parameters
    history: list[dict] = field(default_factory=list)


def train(
    data,
    kernels: str | Strategy = "vector",
    *,
    network: Network | None = None,
    epochs: int = 1,
    batch: int = BATCH,
    rate: float = RATE,
    seed: int = 0,
    n_threads: int | None = None,
    progress: bool | None = None,
) -> Training:
    """Train on a `cnnlab.data.Dataset` with one of KERNELS.

    The rate applies to the mean gradient of a batch. The seed fixes the initial parameters and the
    order of the images, so that all strategies see the same batches. `progress` shows a bar (None:
    on a terminal only). A parallel strategy runs on `n_threads` (None: one for each core): the same
    seed and number of threads give the same bits. Raises ValueError for impossible arguments.
    """
    strategy = find(kernels)
    check_plan(data, epochs, batch, rate, seed)
    if n_threads is not None and n_threads != 1 and not strategy.parallel:
        raise ValueError(f"n_threads: {strategy.name} runs on one thread, got {n_threads}")
    with pool.threads(n_threads if strategy.parallel else 1):
        return descend(data, strategy, network or Network(), epochs, batch, rate, seed, progress)


def descend(data, strategy, network, epochs, batch, rate, seed, progress) -> Training:
    """`train` with its arguments checked and its threads chosen."""
    params = network.parameters(seed, strategy.dtype)
    grads = network.zeros(strategy.dtype)
    images, labels = data.train_images, data.train_labels
    for size in {batch, len(images) % batch or batch}:  # compiles, also for the last, partial batch
        few = np.arange(size)
        x = images[few].astype(strategy.dtype, copy=False)
        loss_and_gradients(strategy, params, x, labels[few], grads)
    training = Training(params)
    for epoch in range(1, epochs + 1):
        order = np.random.default_rng([seed, epoch]).permutation(len(images))
        total, seen = 0.0, 0
        bar = tqdm(
            total=len(images),
            desc=f"epoch {epoch}",
            unit="image",
            disable=None if progress is None else not progress,
        )
        start = time.perf_counter()
        for first in range(0, len(images), batch):
            chosen = order[first : first + batch]
            x = images[chosen].astype(strategy.dtype, copy=False)
            total += sgd_step(strategy, params, grads, x, labels[chosen], rate)
            seen += len(chosen)
            if not bar.disable:
                bar.set_postfix(loss=f"{total / seen:.3f}", refresh=False)
                bar.update(len(chosen))
        seconds = time.perf_counter() - start
        bar.close()
        training.history.append(
            {
                "epoch": epoch,
                "loss": total / seen,
                "test_accuracy": accuracy(strategy, params, data.test_images, data.test_labels),
                "seconds": seconds,
                "images_per_second": seen / seconds,
            }
        )
    return training


def sgd_step(
    strategy: Strategy,
    params: Parameters,
    grads: Parameters,
    x: np.ndarray,
    labels: np.ndarray,
    rate: float,
) -> float:
    """One step of stochastic gradient descent on a batch; returns its loss, summed over images.

    `grads` is the place for the gradients, and holds the step afterwards.
    """
    loss = loss_and_gradients(strategy, params, x, labels, grads)
    grads.flat *= rate / len(labels)
    params.flat -= grads.flat
    return loss


def predict(
    kernels: str | Strategy, params: Parameters, images: np.ndarray, batch: int = 256
) -> np.ndarray:
    """Most likely class, int64 (N,), of each image (N,C,H,W); N > 0, else ValueError."""
    strategy = find(kernels)
    classes = [
        forward(
            strategy, params, images[first : first + batch].astype(strategy.dtype)
        ).dense.argmax(1)
        for first in range(0, max(1, len(images)), batch)
    ]
    return np.concatenate(classes)


def accuracy(
    kernels: str | Strategy, params: Parameters, images: np.ndarray, labels: np.ndarray
) -> float:
    """Share of the images (N,C,H,W) that are classified as labelled, between 0 and 1."""
    return float((predict(kernels, params, images) == labels).mean())


def find(kernels: str | Strategy) -> Strategy:
    """The strategy of that name; a Strategy is returned as it is."""
    if isinstance(kernels, Strategy):
        return kernels
    if kernels not in KERNELS:
        raise ValueError(f"kernels should be one of {', '.join(KERNELS)}, got {kernels!r}")
    return KERNELS[kernels]


def check_plan(data, epochs: int, batch: int, rate: float, seed: int) -> None:
    """Check the numbers of a training; raise ValueError naming the one that is impossible."""
    for name, number, least in (("epochs", epochs, 1), ("batch", batch, 1), ("seed", seed, 0)):
        if not isinstance(number, int | np.integer) or number < least:
            raise ValueError(f"{name} should be a whole number of at least {least}, got {number!r}")
    if not isinstance(rate, numbers.Real) or not 0 < rate < np.inf:
        raise ValueError(f"rate should be a positive number, got {rate!r}")
    if batch > len(data.train_images):
        raise ValueError(
            f"batch should be at most the {len(data.train_images)} images, got {batch}"
        )
