"""What trained parameters are worth: predictions and accuracy."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tqdm import tqdm

from cnnlab.kernels import Strategy, find
from cnnlab.kernels.composition import forward
from cnnlab.network import Network, Parameters
from cnnlab.runtime import arguments, failures, thread_pool
from cnnlab.runtime.arguments import at_least, positive
from cnnlab.runtime.files import check_writable
from cnnlab.training import checkpoint
from cnnlab.training.method import Method
from cnnlab.training.optimizers import OPTIMIZERS, Sgd
from cnnlab.training.replica import Replica


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


# --- training -------------------------------------------------------------------------------------

# Chosen on MNIST, where lesson 04 shows the choice: small batches take more steps an epoch, and up
# to this rate the loss still falls smoothly.
BATCH, RATE = 16, Sgd.usual


# Beyond it, the neighbours of a float32 are 2 apart: no sum with it lies on the sigmoid's slope.
WORST_PARAMETER = 2.0**24


class Diverged(ValueError):
    """Loss or parameters are as no network's that learns: the steps were too long."""

    status = 3  # of the command line


@dataclass
class Training:
    """What a training leaves: the parameters and, for each epoch, one row of history.

    A row holds `epoch`, `loss` (mean per image, while training), `test_accuracy`, `seconds` and
    `images_per_second`; time counts the training steps alone, compiled before the clock starts.
    `unsaved` says which checkpoints could not be written, and why.
    """

    params: Parameters
    history: list[dict] = field(default_factory=list)
    unsaved: list[str] = field(default_factory=list)


def train(
    data,
    kernels: str | Strategy = "vector",
    *,
    network: Network | None = None,
    epochs: int = 1,
    batch: int = BATCH,
    rate: float | None = None,
    seed: int = 0,
    n_threads: int | None = None,
    method: Method | None = None,
    optimizer: str = "sgd",
    save: str | Path | None = None,
    resume: str | Path | None = None,
    progress: bool | None = None,
    tell: Callable[[dict], None] = lambda row: None,
) -> Training:
    """Train on a `cnnlab.data.Dataset` with one of KERNELS.

    The rate applies to the mean gradient of a batch (None: see `usual_rate`). The seed
    fixes the initial parameters and the order of the images, so that all strategies see the same
    batches. `progress` shows a bar (None: on a terminal only). A parallel strategy runs on
    `n_threads` (None: one for each core): the same seed and number of threads give the same bits.
    `method` says how ranks train together, see `cnnlab.distributed.METHODS` (None: alone);
    `optimizer` is one of OPTIMIZERS. `save` names a
    file for a checkpoint after every epoch (rank 0 writes it), `resume` one to go on from, up to
    `epochs`: the parameters are those of an unbroken training. `tell` is called with each row of
    the history as its epoch ends. Raises ValueError for impossible arguments, ranks that disagree
    or a checkpoint of another training, and Diverged after an epoch that led nowhere, see
    `check_course`; the last checkpoint stays.
    """
    strategy, network, method = find(kernels), network or Network(), method or Method()
    make = arguments.find("optimizer", optimizer, OPTIMIZERS)
    rate = usual_rate(optimizer, network) if rate is None else rate
    check_plan(data, strategy, epochs, batch, rate, seed, n_threads)
    if save is not None:
        check_writable("save", save)
    plan = {"data": data.name, "images": len(data.train_images), "batch": batch}
    plan |= {"rate": float(rate), "seed": seed, "optimizer": optimizer}
    training, steps = Training(network.parameters(seed, strategy.dtype)), make(float(rate))
    images, labels = data.train_images, data.train_labels
    replica = Replica(strategy, training.params, images, labels, batch, steps)
    method.make_room(replica)
    plan |= method.facts()
    state = steps.state | method.kept
    done = checkpoint.Checkpoint(training.params, state, training.history, plan)
    if resume is not None:
        training.history += checkpoint.resume(resume, done, epochs)
    same = {"plan": plan, "history": training.history, "parameters": training.params.flat}
    method.agree(same | {"data": (images, labels)})
    with thread_pool.threads(n_threads if strategy.parallel else 1):
        warm_up(replica, method)
        for epoch in range(len(training.history) + 1, epochs + 1):
            order = np.random.default_rng([seed, epoch]).permutation(len(images))
            with (
                progress_bar(f"epoch {epoch}", len(order), progress) as bar,
                np.errstate(over="ignore", invalid="ignore"),  # the end of the epoch tells
            ):
                row = run_epoch(replica, method, order, bar)
            method.gather(replica)
            check_course(epoch, row["loss"], training.params)
            row["test_accuracy"] = test_accuracy(data, replica, method)
            training.history.append({"epoch": epoch} | row)
            tell(training.history[-1])
            if save is not None and method.rank == 0:
                try:
                    checkpoint.save(save, done)
                except OSError as error:
                    training.unsaved.append(f"epoch {epoch} is not in {save}: {error}")
    return training


def usual_rate(optimizer: str, network: Network) -> float:
    """The rate to begin with: the optimiser's for the report's network, in another's proportion."""
    usual = arguments.find("optimizer", optimizer, OPTIMIZERS).usual
    return usual * (network.usual_rate / Network().usual_rate)


def guessing(data) -> float:
    """The accuracy of always answering the most frequent class, between 0 and 1."""
    return float(np.bincount(data.test_labels).max() / len(data.test_labels))


def check_course(epoch: int, loss: float, params: Parameters) -> None:
    """Raise Diverged unless an epoch's mean loss and the parameters after it are bearable.

    The loss is bounded, however long the steps. But a network that is sure that each answer is 0
    has a loss of only 24 ln 2 (see `kernels.contract`), and may learn again; one that knows
    nothing, all of whose outputs are 1/2, has ln 2 for each class.
    """
    worst_loss = max(24, 2 * params.network.classes) * math.log(2)
    largest = abs(params.flat).max()
    for what, got, most in (("loss", loss, worst_loss), ("parameters", largest, WORST_PARAMETER)):
        if not got <= most * (1 + 1e-6):  # NaN is not
            raise Diverged(
                f"diverged at epoch {epoch}: expected {what} of at most {most:.3g}, got {got:.3g}; "
                "lower the rate"
            )


def warm_up(replica: Replica, method: Method) -> None:
    """Compile what an epoch needs, also for its last, partial batch; the parameters stay."""
    group, n_images = replica, len(replica.images)
    still = type(group.optimizer)(0.0)
    tried = Replica(
        group.strategy, group.params.copy(), group.images, group.labels, group.batch, still
    )
    for size in {group.batch, n_images % group.batch or group.batch}:
        method.steps(tried, np.arange(size))


def progress_bar(what: str, n_images: int, progress: bool | None) -> tqdm:
    """A bar for one epoch; None shows it on a terminal only."""
    disable = None if progress is None else not progress
    return failures.bar(total=n_images, desc=what, unit="image", disable=disable)


def run_epoch(replica: Replica, method: Method, order: np.ndarray, bar: tqdm) -> dict:
    """Train on all images once, in this order; loss, seconds and speed for a row of history."""

    def tell(loss: float, n_images: int) -> None:
        if not bar.disable:
            bar.set_postfix(loss=f"{loss / n_images:.3f}", refresh=False)
            bar.update(n_images)

    method.barrier()
    start = method.clock()
    total = method.epoch(replica, order, tell)
    method.barrier()
    seconds = method.clock() - start
    return {
        "loss": total / len(order),
        "seconds": seconds,
        "images_per_second": len(order) / seconds if seconds else 0.0,  # a clock that stands still
    }


def test_accuracy(data, replica: Replica, method: Method) -> float:
    """Share of the test images that are right; each rank tries its block of them."""
    mine, right = method.share(len(data.test_labels)), 0
    if mine.start < mine.stop:
        result = predict(replica.strategy, replica.params, data.test_images[mine])
        right = int((result == data.test_labels[mine]).sum())
    return method.total(right) / len(data.test_labels)


def check_plan(data, strategy, epochs, batch, rate, seed, n_threads) -> None:
    """Check the numbers of a training; raise ValueError naming the one that is impossible."""
    for name, number, least in (("epochs", epochs, 1), ("batch", batch, 1), ("seed", seed, 0)):
        at_least(name, number, least)
    positive("rate", rate)
    check_batch_size(data, batch)
    if n_threads is not None and n_threads != 1 and not strategy.parallel:
        raise ValueError(
            f"n_threads: expected 1, {strategy.name} runs on one thread, got {n_threads}"
        )


def check_batch_size(data, batch: int) -> None:
    """Raise ValueError where a batch has more images than there are to train on."""
    if batch > len(data.train_images):
        raise ValueError(
            f"batch: expected at most the {len(data.train_images)} images, got {batch}"
        )
