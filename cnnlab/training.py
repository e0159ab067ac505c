"""Training: mini-batch stochastic gradient descent, the same for every strategy."""

import numbers
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tqdm import tqdm

from cnnlab import checkpoint, pool
from cnnlab.kernels import KERNELS
from cnnlab.kernels.contract import Strategy, check_array
from cnnlab.network import (
    Network,
    Parameters,
    check_gradients,
    chosen_gradients,
    forward,
)

# Chosen on MNIST, where lesson 04 shows the choice: small batches take more steps an epoch, and up
# to this rate the loss still falls smoothly.
BATCH, RATE = 16, 0.4
# Images that compiled loops take between two looks at the progress bar: about a tenth of a second.
IN_A_ROW = 16384


class OneRank:
    """Who takes part in a training: here one process, which has every batch to itself."""

    rank, size = 0, 1

    def gradients(self, strategy, params, images, labels, chosen, grads) -> float:
        """Loss and gradients of the whole batch, from this rank's `chosen` images and labels.

        Nothing is checked, see `network.chosen_gradients`.
        """
        return chosen_gradients(strategy, params, images, labels, chosen, grads)

    def sgd_steps(self, strategy):
        """The strategy's loop over batches; None where it has none that goes with these ranks."""
        return strategy.sgd_steps

    def share(self, chosen: np.ndarray) -> np.ndarray:
        """The indices of this rank's images of a batch: all."""
        return chosen

    def total(self, number: int) -> int:
        """The sum of a number over all ranks."""
        return number

    def barrier(self) -> None:
        """Nobody to wait for."""


ONE_RANK = OneRank()


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
    ranks: OneRank = ONE_RANK,
    save: str | Path | None = None,
    resume: str | Path | None = None,
    progress: bool | None = None,
) -> Training:
    """Train on a `cnnlab.data.Dataset` with one of KERNELS.

    The rate applies to the mean gradient of a batch. The seed fixes the initial parameters and the
    order of the images, so that all strategies see the same batches. `progress` shows a bar (None:
    on a terminal only). A parallel strategy runs on `n_threads` (None: one for each core): the same
    seed and number of threads give the same bits. `ranks` share each batch, see
    `cnnlab.ranks.data_parallel`. `save` names a file for a checkpoint after every epoch (rank 0
    writes it), `resume` one to go on from, up to `epochs`: the parameters are those of an unbroken
    training. Raises ValueError for impossible arguments, or a checkpoint of another training.
    """
    strategy = find(kernels)
    check_plan(data, epochs, batch, rate, seed)
    if n_threads is not None and n_threads != 1 and not strategy.parallel:
        raise ValueError(f"n_threads: {strategy.name} runs on one thread, got {n_threads}")
    network = network or Network()
    plan = {"data": data.name, "images": len(data.train_images), "batch": batch}
    plan |= {"rate": float(rate), "seed": seed}
    training = Training(network.parameters(seed, strategy.dtype))
    if resume is not None:
        training = resumed(resume, training.params, plan, epochs)
    with pool.threads(n_threads if strategy.parallel else 1):
        warm_up(data, strategy, training.params, batch, ranks)
        for epoch in range(len(training.history) + 1, epochs + 1):
            order = np.random.default_rng([seed, epoch]).permutation(len(data.train_images))
            bar = progress_bar(f"epoch {epoch}", len(order), progress)
            row = run_epoch(data, strategy, training.params, order, batch, rate, ranks, bar)
            training.history.append({"epoch": epoch} | row)
            if save is not None and ranks.rank == 0:
                checkpoint.save(save, training.params, training.history, plan)
    return training


def resumed(path, params: Parameters, plan: dict, epochs: int) -> Training:
    """A training as a checkpoint left it; ValueError if it is of another one."""
    saved, history, its_plan = checkpoint.load(path)
    different = {k: (v, its_plan.get(k)) for k, v in plan.items() if v != its_plan.get(k)}
    if saved.network != params.network:
        different["network"] = params.network, saved.network
    for name, (here, there) in different.items():
        raise ValueError(f"resume: {path} was trained with {name} {there}, not {here}")
    if len(history) > epochs:
        raise ValueError(f"resume: {path} has done {len(history)} epochs, more than {epochs}")
    params.flat[:] = saved.flat
    return Training(params, history)


def warm_up(data, strategy, params, batch, ranks) -> None:
    """Compile what an epoch needs, also for its last, partial batch; the parameters stay."""
    images, labels, tried = data.train_images, data.train_labels, params.copy()
    grads = params.network.zeros(strategy.dtype)
    for size in {batch, len(images) % batch or batch}:
        sgd_steps(strategy, tried, grads, images, labels, np.arange(size), batch, 0.0, ranks)


def progress_bar(what: str, n_images: int, progress: bool | None) -> tqdm:
    """A bar for one epoch; None shows it on a terminal only."""
    disable = None if progress is None else not progress
    return tqdm(total=n_images, desc=what, unit="image", disable=disable)


def steps_in_a_row(strategy: Strategy, batch: int, ranks: OneRank = ONE_RANK) -> int:
    """How many steps training takes in one call: several where compiled loops do, else one."""
    return max(1, IN_A_ROW // batch) if ranks.sgd_steps(strategy) else 1


def run_epoch(data, strategy, params, order, batch, rate, ranks, bar) -> dict:
    """Train on all images once, in this order; return a row of history."""
    images, labels = data.train_images, data.train_labels
    grads = params.network.zeros(strategy.dtype)
    several = batch * steps_in_a_row(strategy, batch, ranks)
    total, seen = 0.0, 0
    ranks.barrier()
    start = time.perf_counter()
    for first in range(0, len(images), several):
        part = order[first : first + several]
        total += sgd_steps(strategy, params, grads, images, labels, part, batch, rate, ranks)
        seen += len(part)
        if not bar.disable:
            bar.set_postfix(loss=f"{total / seen:.3f}", refresh=False)
            bar.update(len(part))
    ranks.barrier()
    seconds = time.perf_counter() - start
    bar.close()
    tested = ranks.share(np.arange(len(data.test_images)))
    right = 0
    if len(tested):
        right = int(
            (predict(strategy, params, data.test_images[tested]) == data.test_labels[tested]).sum()
        )
    return {
        "loss": total / seen,
        "test_accuracy": ranks.total(right) / len(data.test_images),
        "seconds": seconds,
        "images_per_second": seen / seconds,
    }


def sgd_steps(
    strategy: Strategy,
    params: Parameters,
    grads: Parameters,
    images: np.ndarray,
    labels: np.ndarray,
    order: np.ndarray,
    batch: int,
    rate: float,
    ranks: OneRank = ONE_RANK,
) -> float:
    """Steps of stochastic gradient descent on the images number `order`, a batch at a time.

    Returns the loss, summed over images. A strategy that offers `sgd_steps` whole is asked for
    that. `grads` is as in `sgd_step`. Raises ValueError or TypeError on bad arguments.
    """
    plain = images.dtype == strategy.dtype and images.flags.carray and labels.flags.carray
    if plain:
        check_gradients(strategy, params, images, labels, grads)
        check_array("order", order, np.int64)
        if len(order) and not (0 <= order.min() and order.max() < len(images)):
            raise ValueError(f"order should number images 0..{len(images) - 1}, got {order}")
    if plain and (many_steps := ranks.sgd_steps(strategy)):
        with strategy.lock:
            return float(many_steps(params, grads, images, labels, order, batch, float(rate)))
    total = 0.0
    for first in range(0, len(order), batch):
        chosen = order[first : first + batch]
        mine = ranks.share(chosen)
        if plain:
            total += ranks.gradients(strategy, params, images, labels, mine, grads)
            update(params, grads, rate / len(chosen))
        else:
            x = strategy.take(images, mine)
            total += sgd_step(strategy, params, grads, x, labels[mine], rate, len(chosen), ranks)
    return total


def update(params: Parameters, grads: Parameters, rate: float) -> None:
    """Go against the gradients, which become the step."""
    grads.flat *= rate
    params.flat -= grads.flat


def sgd_step(
    strategy: Strategy,
    params: Parameters,
    grads: Parameters,
    x: np.ndarray,
    labels: np.ndarray,
    rate: float,
    n_images: int | None = None,
    ranks: OneRank = ONE_RANK,
) -> float:
    """One step of stochastic gradient descent on a batch; returns its loss, summed over images.

    `grads` is the place for the gradients, and holds the step afterwards. Where several ranks share
    a batch, x and labels are this rank's, and `n_images` counts those of all.
    """
    if len(x):  # where there are more ranks than images, some have none
        check_gradients(strategy, params, x, labels, grads)
    loss = ranks.gradients(strategy, params, x, labels, np.arange(len(x)), grads)
    update(params, grads, rate / (n_images or len(labels)))
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
