import numpy as np
import pytest

from cnnlab import training
from cnnlab.data import load
from cnnlab.kernels import KERNELS
from cnnlab.kernels.composition import forward
from cnnlab.network import Network

DIGITS = load("digits", 330, 100)


def test_a_prediction_is_the_most_likely_class_of_each_image():
    params = Network().parameters(2)
    images, labels = DIGITS.test_images, DIGITS.test_labels
    likely = forward(KERNELS["loops"], params, images)["dense_sigmoid"].argmax(1)
    for batch in (1000, 100, 99, 7):
        result = training.predict("loops", params, images, batch)
        assert result.dtype == np.int64 and (result == likely).all()
    right = sum(int(a == b) for a, b in zip(likely, labels, strict=True)) / 100
    assert training.accuracy(KERNELS["loops"], params, images, labels) == pytest.approx(right)
    assert training.accuracy("loops", params, images, likely) == 1
    with pytest.raises(ValueError, match=r"x: expected shape .*N > 0"):
        training.predict("loops", params, images[:0])
