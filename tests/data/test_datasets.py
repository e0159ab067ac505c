import re
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cnnlab.data import DataError, datasets, held_out, load
from cnnlab.data import mnist as mnist_files
from cnnlab.runtime import files as cache


@pytest.fixture(autouse=True)
def fetched(tmp_path, monkeypatch):
    """No folder of the user's, an empty cache, every download fails; the URLs asked for."""
    asked = []

    def refuse(mirror, name, file):
        asked.append(mirror + file)
        raise DataError(f"{file}.gz: refused")

    monkeypatch.delenv("CNNLAB_DATA", raising=False)
    monkeypatch.delenv("CNNLAB_OFFLINE", raising=False)
    monkeypatch.setattr(cache, "folder", lambda name: tmp_path / name)
    monkeypatch.setattr(mnist_files, "FAILED", {})
    monkeypatch.setattr(mnist_files, "fetch", refuse)
    return asked


@pytest.fixture
def mnist(monkeypatch):
    """Four arrays as MNIST's, tiny, found in "the cache"."""
    draw = np.random.default_rng(0).integers
    arrays = []
    for n in (7, 4):
        arrays += [draw(256, size=(n, 28, 28), dtype=np.uint8), draw(10, size=n, dtype=np.uint8)]
    monkeypatch.setattr(datasets, "read_dataset", lambda name, retry: (list(arrays), "the cache"))
    return arrays


def parts(dataset):
    yield dataset.train_images, dataset.train_labels
    yield dataset.test_images, dataset.test_labels


def assert_well_formed(dataset, n_train, n_test):
    for (images, labels), n in zip(parts(dataset), (n_train, n_test), strict=True):
        assert images.shape == (n, 1, 28, 28) and labels.shape == (n,)
        assert images.dtype == np.float32 and labels.dtype == np.int64
        assert images.flags.c_contiguous
        assert images.min() >= 0 and images.max() <= 1
        assert labels.min() >= 0 and labels.max() <= 9
    assert len(dataset.class_names) == 10


def test_published_images_are_scaled_and_the_first_n_taken(mnist):
    dataset = load("mnist", n_train=5)
    assert_well_formed(dataset, 5, 4)
    assert (dataset.name, dataset.source) == ("mnist", "the cache")
    np.testing.assert_array_equal(dataset.train_images[:, 0], mnist[0][:5] / np.float32(255))
    np.testing.assert_array_equal(dataset.train_labels, mnist[1][:5])
    np.testing.assert_array_equal(dataset.test_images[:, 0], mnist[2] / np.float32(255))
    np.testing.assert_array_equal(dataset.test_labels, mnist[3])


@pytest.mark.parametrize("name", ["mnist", "fashion", "auto"])
def test_more_images_than_published_are_refused(mnist, name):
    with pytest.raises(ValueError, match=r"n_train: expected at most 7 for \w+, got 8"):
        load(name, n_train=8)
    with pytest.raises(ValueError, match=r"n_test: expected at most 4 for \w+, got 5"):
        load(name, n_test=5)


@pytest.mark.parametrize("n", [0, -1, 2.5, 3.0, True, "3"])
def test_impossible_numbers_and_unknown_names_are_refused(fetched, n):
    text = ": expected a whole number of at least 1, got"
    for name in ("mnist", "digits", "auto"):
        for argument in ("n_train", "n_test"):
            with pytest.raises(ValueError, match=f"{argument}{text}"):
                load(name, **{argument: n})
    with pytest.raises(ValueError, match="name: expected one of mnist, fashion, digits, auto, got"):
        load(n)
    assert fetched == []


def test_digits_are_the_originals_of_scikit_learn_at_the_size_of_mnists(fetched):
    from scipy.ndimage import zoom  # here, as both take seconds and every worker collects all tests
    from sklearn.datasets import load_digits

    dataset = load("digits")
    assert_well_formed(dataset, 1437, 360)
    originals, labels = load_digits(return_X_y=True)
    seen = {}
    for images, result in parts(dataset):
        for image, label in zip(images, result, strict=True):
            seen[image.tobytes()] = label
    # As many different images as there are originals: none is in both parts.
    assert len(seen) == len(originals) == 1797
    for pixels, label in zip(originals[::50], labels[::50], strict=True):
        large = zoom(pixels.reshape(8, 8) / 16, 2.5, order=1, mode="nearest", grid_mode=True)
        expected = np.pad(large.astype(np.float32), 4)[None]
        distances = [
            np.abs(np.frombuffer(s, np.float32).reshape(1, 28, 28) - expected).max() for s in seen
        ]
        nearest = int(np.argmin(distances))
        assert distances[nearest] < 1e-6
        assert list(seen.values())[nearest] == label
    share = np.bincount(dataset.test_labels) / np.bincount(dataset.train_labels)
    np.testing.assert_allclose(share, 360 / 1437, rtol=0.05)
    assert dataset.source == "scikit-learn" and fetched == []


def test_digits_that_were_kept_are_the_same_also_where_the_file_is_damaged(tmp_path, monkeypatch):
    fresh = load("digits", 1500, 400)
    (file,) = (tmp_path / "digits").iterdir()
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "sklearn.datasets", None)
        kept = load("digits", 1500, 400)
    whole = file.read_bytes()
    file.write_bytes(whole[:-100])
    again = load("digits", 1500, 400)
    assert file.read_bytes() == whole
    for other in (kept, again):
        for pair, own in zip(parts(fresh), parts(other), strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(pair, own, strict=True))


def test_where_nothing_can_be_kept_there_are_digits_all_the_same(tmp_path):
    (tmp_path / "digits").touch()
    assert len(load("digits").train_labels) == 1437


def test_more_digits_are_shifted_copies_of_the_same_part():
    copies = 2
    dataset = load("digits", n_train=1437 * (1 + copies), n_test=360 * (1 + copies))
    originals = load("digits")
    offsets = []
    for (images, labels), (centred, names) in zip(parts(dataset), parts(originals), strict=True):
        np.testing.assert_array_equal(images[: len(centred)], centred)
        np.testing.assert_array_equal(labels, np.tile(names, 1 + copies))
        for k in range(len(centred), len(images), 7):  # of some
            digit = centred[k % len(centred), 0]
            shifts = [(i, j) for i in range(-2, 3) for j in range(-2, 3)]
            fits = [s for s in shifts if np.array_equal(np.roll(digit, s, (0, 1)), images[k, 0])]
            assert len(fits) == 1, f"image {k} is not its original, shifted"
            offsets += fits
    assert (0, 0) not in offsets
    assert len(set(offsets)) == 24


@settings(max_examples=8)
@given(st.integers(1, 4000), st.integers(1, 1000))
def test_any_number_of_digits_always_the_same_ones(n_train, n_test):
    dataset, longest = load("digits", n_train, n_test), load("digits", 4000, 1000)
    assert_well_formed(dataset, n_train, n_test)
    for some, all_of_them in zip(parts(dataset), parts(longest), strict=True):
        for short, long in zip(some, all_of_them, strict=True):
            np.testing.assert_array_equal(short, long[: len(short)])


def test_auto_is_mnist_where_it_is_to_be_had(mnist, capsys):
    assert load("auto", n_test=2).name == "mnist"
    assert capsys.readouterr().out == "auto chose mnist: the cache\n"


def test_auto_falls_back_to_digits_says_so_in_short_and_asks_the_mirrors_once(fetched, capsys):
    for _ in range(2):
        dataset = load("auto", n_train=3, n_test=2)
        assert_well_formed(dataset, 3, 2)
        assert dataset.name == "digits"
        said = capsys.readouterr().out
        assert said == "MNIST not reachable; using scikit-learn's digits\n"
        assert len(fetched) == 2
    with pytest.raises(DataError, match=r"mnist is not available: .*refused.*refused"):
        load("mnist")
    assert len(fetched) == 4


@pytest.mark.parametrize(
    "content, said",
    [
        (None, "MNIST not reachable, nor in CNNLAB_DATA; using scikit-learn's digits"),
        (b"\0", r"MNIST not usable \(.*train-images-idx3-ubyte.*\); using scikit-learn's digits"),
    ],
)
def test_auto_says_what_a_user_can_mend(content, said, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CNNLAB_DATA", str(tmp_path))
    if content:
        (tmp_path / "train-images-idx3-ubyte").write_bytes(content)
    assert load("auto", n_train=3, n_test=2).name == "digits"
    assert re.fullmatch(said + "\n", capsys.readouterr().out)


def test_auto_asks_no_mirror_offline(fetched, monkeypatch, capsys):
    monkeypatch.setenv("CNNLAB_OFFLINE", "1")
    assert load(n_train=1, n_test=1).name == "digits"
    assert capsys.readouterr().out.startswith("MNIST not reachable; ")
    with pytest.raises(DataError, match="CNNLAB_OFFLINE is set"):
        load("mnist")
    assert fetched == []


def test_images_held_out_are_neither_trained_on_nor_test_images():
    digits = load("digits", 200, 50)
    data = held_out(digits, 120, 40)
    assert np.array_equal(data.train_images, digits.train_images[:120])
    assert np.array_equal(data.test_images, digits.train_images[-40:])
    assert np.array_equal(data.test_labels, digits.train_labels[-40:])
    assert len(data.train_labels) == 120
