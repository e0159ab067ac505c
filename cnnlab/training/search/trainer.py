"""What a trial is: a training from a state on, scored on images that were held out."""

import time
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from cnnlab.kernels import find
from cnnlab.network import Network
from cnnlab.training.loop import accuracy
from cnnlab.training.method import Method
from cnnlab.training.optimizers import Momentum
from cnnlab.training.replica import Replica
from cnnlab.training.search.layers import network_of
from cnnlab.training.search.protocol import Trial

State = dict[str, np.ndarray]


class Result(NamedTuple):
    """What comes of a trial: its score, and its state after it.

    `report` is noted and plays no part in the search, such as the accuracy on test images.
    """

    score: float
    state: State
    report: dict


@dataclass(frozen=True)
class Trainer:
    """Train as a trial says, with momentum, on a `cnnlab.data.Dataset` whose test images were held
    out of the training ones (`cnnlab.lessons.lesson_53.held_out`): they give the score.

    A configuration has a `rate`, `friction` = 1 − µ, a `batch`, and perhaps the network's `genes`,
    see `layers`. `images` and `labels` are those of the test proper: what share of them is right is
    only reported. The state holds the parameters and the velocity.
    """

    data: object
    images: np.ndarray
    labels: np.ndarray
    kernels: str = "vector"
    network: Network = field(default_factory=Network)

    def __call__(self, trial: Trial, state: State | None) -> Result:
        """Train from the parent's state (None: from the trial's seed) for the trial's epochs."""
        begin, config, strategy = time.perf_counter(), trial.config, find(self.kernels)
        network = network_of(config["genes"]) if "genes" in config else self.network
        params = network.parameters(trial.seed, strategy.dtype)
        optimizer = Momentum(config["rate"], 1 - config["friction"])
        if state is not None:
            params.flat[:] = state["params"]
            optimizer.state["velocity"] = state["velocity"].copy()
        images, labels = self.data.train_images, self.data.train_labels
        replica = Replica(strategy, params, images, labels, config["batch"], optimizer)
        rng, method = np.random.default_rng(trial.seed), Method()
        with np.errstate(over="ignore", invalid="ignore"):  # what diverges has a low score
            for _ in range(trial.epochs):
                method.steps(replica, rng.permutation(len(images)))
            score = accuracy(strategy, params, self.data.test_images, self.data.test_labels)
            test = accuracy(strategy, params, self.images, self.labels)
        after = {"params": params.flat, "velocity": optimizer.state["velocity"]}
        return Result(score, after, {"test": test, "begin": begin, "end": time.perf_counter()})
