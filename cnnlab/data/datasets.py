"""Images of 28 × 28 pixels in ten classes: `load("mnist")`, `"fashion"`, `"digits"` or `"auto"`.

MNIST and Fashion-MNIST come from the folder that the environment variable CNNLAB_DATA names (or its
subfolder `mnist` or `fashion`), else from the cache, else from the public mirrors. The digits come
with scikit-learn and need no network. If CNNLAB_OFFLINE is set, nothing is downloaded.
"""

import contextlib
import importlib.metadata
import os
import zipfile
from dataclasses import dataclass, replace

import numpy as np

from cnnlab.data.mnist import PUBLISHED, DataError, NotReachable, read_dataset
from cnnlab.runtime import files
from cnnlab.runtime.arguments import at_least, one_of
from cnnlab.runtime.files import replacing

NAMES = (*PUBLISHED, "digits", "auto")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images (N, 1, 28, 28) float32 in [0, 1], C-contiguous, and labels (N,) int64 from 0 to 9.

    `class_names[label]` is the meaning of a label; `source` says where the images came from.
    """

    name: str
    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
    class_names: tuple[str, ...]
    source: str


def load(name: str = "auto", n_train: int | None = None, n_test: int | None = None) -> Dataset:
    """The first `n_train` training images and `n_test` test images of a dataset, or all of them.

    "mnist" and "fashion" have 60,000 training and 10,000 test images. "digits" has 1,437 and 360;
    more are shifted copies of these. "auto" is MNIST if it is available, else digits, and prints
    which. Raises ValueError for an unknown name or an impossible number, and DataError if
    a file is damaged or cannot be found.
    """
    one_of("name", name, NAMES)
    for argument, n in (("n_train", n_train), ("n_test", n_test)):
        if n is not None:
            at_least(argument, n, 1)
    if name == "digits":
        return _digits(n_train, n_test)
    if name in PUBLISHED:
        return _published(name, n_train, n_test)
    try:
        dataset = _published("mnist", n_train, n_test, retry=False)
        print(f"auto chose mnist: {dataset.source}")
    except DataError as error:
        dataset = _digits(n_train, n_test)
        why = f"not usable ({error})"  # which asks for a remedy; "mnist" tells the rest
        if isinstance(error, NotReachable):
            why = "not reachable" + ", nor in CNNLAB_DATA" * bool(os.environ.get("CNNLAB_DATA"))
        print(f"MNIST {why}; using scikit-learn's digits")
    return dataset


def _published(name: str, n_train, n_test, *, retry: bool = True) -> Dataset:
    """MNIST or Fashion-MNIST, scaled to [0, 1]."""
    arrays, source = read_dataset(name, retry=retry)
    parts = []
    for argument, n in (("n_train", n_train), ("n_test", n_test)):
        images, labels, *arrays = arrays
        if n is not None and n > len(images):
            raise ValueError(f"{argument}: expected at most {len(images)} for {name}, got {n}")
        scaled = images[:n, None].astype(np.float32, order="C")
        scaled /= 255  # in place: the training images alone are 188 MB
        parts += [scaled, labels[:n].astype(np.int64)]
    return Dataset(name, *parts, PUBLISHED[name].class_names, source)


def _digits(n_train: int | None, n_test: int | None) -> Dataset:
    """1,797 digits of 8 × 8 pixels (E. Alpaydin and C. Kaynak, 1998), as large as those of MNIST.

    An MNIST digit fills 20 × 20 pixels in the middle of 28 × 28, so each is scaled to that size.
    """
    images, labels, train, test = _originals()
    # Bilinear interpolation: row p holds the weights of the 8 pixel centres in pixel p of the 20.
    centres = (np.arange(20) + 0.5) * 8 / 20 - 0.5
    weights = np.stack([np.interp(centres, np.arange(8), pixel) for pixel in np.eye(8)], axis=1)
    scaled = (weights @ (images.reshape(-1, 8, 8) / 16) @ weights.T).astype(np.float32)
    parts = []
    for seed, (originals, n) in enumerate(((train, n_train), (test, n_test))):
        n = len(originals) if n is None else n
        repeated = np.resize(labels[originals], n).astype(np.int64)  # cycling, as the images do
        parts += [_place(scaled[originals], n, seed), repeated]
    return Dataset("digits", *parts, PUBLISHED["mnist"].class_names, "scikit-learn")


def held_out(data: Dataset, n_train: int, n_held: int) -> Dataset:
    """The first training images, tested on the last ones; the test images take no part."""
    return replace(
        data,
        train_images=data.train_images[:n_train],
        train_labels=data.train_labels[:n_train],
        test_images=data.train_images[-n_held:],
        test_labels=data.train_labels[-n_held:],
    )


def _originals() -> list[np.ndarray]:
    """The digits (M,64), their labels, and which of them are trained on and which tested.

    Importing scikit-learn takes a second, on each rank of a cluster, too: so they are kept.
    """
    version = importlib.metadata.version("scikit-learn")
    file = files.folder("digits") / f"scikit-learn-{version}.npz"
    with contextlib.suppress(OSError, ValueError, EOFError, zipfile.BadZipFile, KeyError):
        with np.load(file) as kept:
            return [kept[f"arr_{k}"] for k in range(4)]
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    split = train_test_split(np.arange(len(labels)), test_size=360, random_state=0, stratify=labels)
    with contextlib.suppress(OSError):  # where nothing can be kept, they are made anew
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as whole:
            np.savez_compressed(whole, images.astype(np.uint8), labels, *split)
    return [images, labels, *split]


def _place(digits: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Images (n,1,28,28) of digits (M,20,20): first each in the middle, then shifted copies.

    Copies of digits lie up to 2 pixels off the middle each way. Image i is the same for every n.
    """
    middle = 4
    offsets = range(middle - 2, middle + 3)
    shifted = [(i, j) for i in offsets for j in offsets if (i, j) != (middle, middle)]
    drawn = np.random.default_rng(seed).integers(len(shifted), size=n)
    images = np.zeros((n, 1, 28, 28), np.float32)
    for k in range(n):
        i, j = (middle, middle) if k < len(digits) else shifted[drawn[k]]
        images[k, 0, i : i + 20, j : j + 20] = digits[k % len(digits)]
    return images
