import numpy as np

from cnnlab.data import load
from cnnlab.lessons import lesson_04
from cnnlab.network import Network
from cnnlab.plots.stepper import MAX_BYTES


def test_outputs_of_a_tenth_are_on_the_plateau():
    params, digits = Network().zeros(), load("digits", n_train=64, n_test=1)
    params.dense_b[:] = -np.log(9)
    loss, _ = lesson_04.mean_gradient(params, digits.train_images, digits.train_labels)
    assert abs(loss - lesson_04.PLATEAU) < 1e-3


def test_two_steps_have_a_frame_for_each_event_and_move_the_parameters():
    digits, params = load("digits", n_train=600, n_test=1), Network().parameters(0)
    x, t = digits.train_images, digits.train_labels
    chosen = np.random.default_rng(1).permutation(len(x))[:16]
    expected = params.flat - 0.4 * lesson_04.mean_gradient(params, x[chosen], t[chosen])[1]
    once = params.copy()
    once.flat[:] = expected
    stepper = lesson_04.two_steps(params, x, t, batch=16, rate=0.4)
    assert len(stepper) == 7 and len(stepper.html.encode()) < MAX_BYTES
    after = lesson_04.mean_gradient(once, x[:512], t[:512])[0]
    assert f"Loss of all: {after:.2f}." in stepper.html
    assert not np.array_equal(params.flat, expected), "the second step"


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


def test_heat_map_counts_the_runs_on_the_plateau():
    losses = {(16, 0.4): [1.0, 1.2, 3.25], (16, 1.6): [3.25, 3.26, 1.0]}
    ax = lesson_04.heat_map(losses, title="a title")
    shown = [text.get_text() for text in ax.texts]
    assert shown == ["1.20\n1 of 3 on the plateau", "3.25\n2 of 3 on the plateau"]


def test_losses_over_seconds_are_medians():
    curves = {"batch 8": (np.array([0.1, 0.2]), np.array([[3.0, 1.0], [5.0, 2.0], [4.0, 9.0]]))}
    ax = lesson_04.over_seconds(curves, 1.0)
    assert ax.lines[0].get_ydata().tolist() == [4, 2]
    assert ax.lines[0].get_xdata().tolist() == [100, 200]
