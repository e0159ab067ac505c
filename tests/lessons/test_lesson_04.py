import numpy as np

from cnnlab.data import load
from cnnlab.lessons import lesson_04
from cnnlab.network import Network
from cnnlab.plots.stepper import MAX_BYTES


def test_one_step_has_a_frame_for_each_event_and_moves_the_parameters():
    digits, params = load("digits", n_train=600, n_test=1), Network().parameters(0)
    x, t = digits.train_images, digits.train_labels
    chosen = np.random.default_rng(1).permutation(len(x))[:16]
    expected = params.flat - 0.4 * lesson_04.mean_gradient(params, x[chosen], t[chosen])[1]
    stepper = lesson_04.one_step(params, x, t, batch=16, rate=0.4)
    assert len(stepper) == 4 and len(stepper.html.encode()) < MAX_BYTES
    assert np.allclose(params.flat, expected, atol=1e-6)
    after = lesson_04.mean_gradient(params, x[:512], t[:512])[0]
    assert f"Loss of 512 images: {after:.2f}." in stepper.html


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
    slow = np.array([0.5, 0.9]), np.array([[3.0, 1.0]])  # begins after the other's end
    ax = lesson_04.over_seconds(curves | {"slow": slow}, 1.0)
    assert [line.get_xdata().tolist() for line in ax.lines[:2]] == [[100, 200], [500]]
