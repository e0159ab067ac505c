import numpy as np

from cnnlab.data import held_out, load
from cnnlab.lessons.lesson_53 import best, search
from cnnlab.training import train

DIGITS = load("digits", 200, 50)


def test_test_images_take_no_part():
    data = held_out(DIGITS, 120, 40)
    assert np.array_equal(data.train_images, DIGITS.train_images[:120])
    assert np.array_equal(data.test_images, DIGITS.train_images[-40:])
    assert np.array_equal(data.test_labels, DIGITS.train_labels[-40:])
    assert len(data.train_labels) == 120


def test_every_rate_is_tried_with_every_seed():
    rates = {"sgd": (0.1, 0.4), "adam": (0.01, 1e9)}
    result = search(DIGITS, rates, (3, 4), epochs=2, batch=8)
    assert {name: tuple(group) for name, group in result.items()} == rates
    for seed, accuracy in zip((3, 4), result["sgd"][0.4], strict=True):
        expected = train(DIGITS, rate=0.4, seed=seed, epochs=2, batch=8).history[-1]
        assert accuracy == expected["test_accuracy"]
    assert result["adam"][1e9] == (0.1, 0.1)  # diverged


def test_the_best_rate_has_the_highest_mean():
    assert best({0.1: (0.5, 0.9), 0.2: (0.8, 0.8), 0.4: (0.9, 0.1)}) == 0.2
