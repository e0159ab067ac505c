import numpy as np

from cnnlab.data import load
from cnnlab.lessons import lesson_04
from cnnlab.network import Network


def test_one_step_is_drawn_and_taken():
    digits, params = load("digits", n_train=600, n_test=1), Network().parameters(0)
    x, t = digits.train_images, digits.train_labels
    chosen = np.random.default_rng(1).permutation(len(x))[:16]
    expected = params.flat - 0.4 * lesson_04.mean_gradient(params, x[chosen], t[chosen])[1]
    drawn = lesson_04.one_step(params, x, t, batch=16, rate=0.4)
    assert np.allclose(params.flat, expected, atol=1e-6)
    after = lesson_04.mean_gradient(params, x[:512], t[:512])[0]
    assert len(drawn) == 3 and f"of 16 images leads to {after:.2f}." in drawn.html


def test_a_step_in_parts_leaves_the_gradients_of_the_whole():
    digits, params = load("digits", n_train=37, n_test=1), Network().parameters(0)
    x, t, grads = digits.train_images, digits.train_labels, Network().zeros()
    lists, ends = lesson_04.step_in_parts(params, grads, x, t), []
    for kind in ("whole", "real", "empty"):
        for _, call in lists[kind]:
            call()
        ends.append(grads.flat / len(x))
    assert np.allclose(ends[:2], lesson_04.mean_gradient(params, x, t)[1], atol=1e-5)
    assert not ends[2].any()


def test_the_suspect_is_right_where_batches_are_full():
    digits = load("digits", n_train=48, n_test=1)
    ends = []
    for n in (48, 44):
        params, twin = Network().parameters(0), Network().parameters(0)
        arguments = digits.train_images[:n], digits.train_labels[:n], 16
        lesson_04.suspect_epoch(params, *arguments, 0.4, np.random.default_rng(0))
        order = np.random.default_rng(0).permutation(n)
        for first in range(0, n, 16):
            chosen = order[first : first + 16]
            x, t = digits.train_images[chosen], digits.train_labels[chosen]
            twin.flat -= np.float32(0.4) * lesson_04.mean_gradient(twin, x, t)[1]
        ends.append(abs(params.flat - twin.flat).max())
    assert ends[0] < 1e-5 < 1e-4 < ends[1]


def test_losses_over_seconds_are_medians():
    curves = {"batch 8": (np.array([0.1, 0.2]), np.array([[3.0, 1.0], [5.0, 2.0], [4.0, 9.0]]))}
    ax = lesson_04.over_seconds(curves, 1.0)
    assert ax.lines[0].get_ydata().tolist() == [4, 2]
    assert ax.lines[0].get_xdata().tolist() == [100, 200]
