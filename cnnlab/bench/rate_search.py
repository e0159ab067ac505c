"""A search for learning rates: the same for every optimiser, with the same budget."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cnnlab.training import Diverged, train

Found = dict[float, tuple[float, ...]]  # by rate, the accuracy of each seed


def held_out(data, n_train: int, n_held: int):
    """A `cnnlab.data.Dataset` of the first training images, tested on the last ones.

    The test images take no part.
    """
    return replace(
        data,
        train_images=data.train_images[:n_train],
        train_labels=data.train_labels[:n_train],
        test_images=data.train_images[-n_held:],
        test_labels=data.train_labels[-n_held:],
    )


def search(
    data, rates: Mapping[str, Sequence[float]], seeds: Sequence[int] = (0, 1), **how
) -> dict[str, Found]:
    """The test accuracy with each rate and seed, by optimiser; `how` goes to `training.train`.

    A training that diverged counts as one that guesses.
    """

    def accuracy(optimizer: str, rate: float, seed: int) -> float:
        plan = how | {"optimizer": optimizer, "rate": rate, "seed": seed, "progress": False}
        try:
            return train(data, **plan).history[-1]["test_accuracy"]
        except Diverged:
            return 1 / len(data.class_names)

    return {
        name: {rate: tuple(accuracy(name, rate, seed) for seed in seeds) for rate in of}
        for name, of in rates.items()
    }


def best(found: Found) -> float:
    """The rate whose accuracies have the highest mean."""
    return max(found, key=lambda rate: sum(found[rate]))
