import functools

import numpy as np
import pytest

from cnnlab.distributed.compressors import compressor
from cnnlab.distributed.compressors.topk import DeepGradientCompression

N, K, STEPS = 40, 4, 30


def by_hand(gradients, momentum=0.9, mask_velocity=True, mask_residual=True):
    """What is sent in all, by the paper's algorithm with lists and float64, or a wrong one."""
    velocity, remainder, sent = np.zeros((3, N))
    for gradient in gradients:
        velocity = momentum * velocity + gradient
        remainder = remainder + velocity
        places = np.argsort(-abs(remainder), kind="stable")[:K]
        sent[places] += remainder[places]
        if mask_residual:
            remainder[places] = 0
        if mask_velocity:
            velocity[places] = 0
    return sent


def drawn(scale=1.0):
    rng = np.random.default_rng(3)
    return scale * (rng.standard_normal(N) + rng.standard_normal((STEPS, N))).astype(np.float32)


def sent(made, gradients, **how):
    total = np.zeros(N)
    for gradient in gradients:
        places, values = made.choose(gradient, **{"n_images": 1, "n_ranks": 1} | how)
        total[places] += values
    return total


def test_it_sends_what_the_paper_does_and_not_what_a_forgetful_one_does():
    result = sent(DeepGradientCompression(N, argument=K / N, clip=None), drawn())
    np.testing.assert_allclose(result, by_hand(drawn()), rtol=1e-3, atol=1e-4)
    for forgotten in ("mask_velocity", "mask_residual"):
        assert abs(result - by_hand(drawn(), **{forgotten: False})).max() > 1


def test_what_is_sent_is_zeroed_in_both_and_nothing_else_is():
    made = DeepGradientCompression(N, argument=K / N, clip=None)
    for gradient in drawn():
        remainder = made.residual + made.momentum * made.velocity + gradient
        going = made.momentum * made.velocity + gradient
        places, values = made.choose(gradient, 1, 1)
        np.testing.assert_allclose(values, remainder[places], rtol=1e-4, atol=1e-5)
        remainder[places] = going[places] = 0
        np.testing.assert_allclose(made.residual, remainder, atol=1e-5)
        np.testing.assert_allclose(made.velocity, going, atol=1e-5)
    assert made.state["residual"] is made.residual and made.state["velocity"] is made.velocity


def test_without_momentum_it_is_topk_with_feedback():
    plain = compressor("streams:0.1")(N)
    made = DeepGradientCompression(N, argument=0.1, momentum=0.0, clip=None)
    np.testing.assert_array_equal(sent(made, drawn()), sent(plain, drawn()))


@pytest.mark.parametrize("n_images, n_ranks", [(1, 1), (32, 1), (32, 4)])
def test_a_gradient_is_clipped_to_its_part_of_the_longest(n_images, n_ranks):
    make = functools.partial(DeepGradientCompression, N, argument=1, momentum=0.0, clip=0.5)
    most = 0.5 * n_images / n_ranks**0.5
    for length, expected in ((0.9 * most, 0.9 * most), (7 * most, most)):
        gradient = np.zeros(N, np.float32)
        gradient[:2] = 0.6 * length, -0.8 * length
        _, values = make().choose(gradient, n_images, n_ranks)
        np.testing.assert_allclose(values[:2], [0.6 * expected, -0.8 * expected], rtol=1e-5)
        assert gradient[0] == np.float32(0.6 * length)  # the caller's stays


def test_the_density_is_warmed_up_in_stages():
    made = compressor("dgc:0.01,2")(2000)
    sizes = [made.choose(np.ones(2000, np.float32), 1, 1)[0].size for _ in range(9)]
    assert sizes == [500, 500, 125, 125, 31, 31, 20, 20, 20]
    at_once = compressor("dgc:0.01")(2000)
    assert at_once.choose(np.ones(2000, np.float32), 1, 1)[0].size == 20


@pytest.mark.parametrize("text", ["dgc:2", "dgc:0.1,", "dgc:0.1,x", "dgc:,5", "dgc:0.1,2,3"])
def test_another_density_or_stage_is_refused(text):
    with pytest.raises(ValueError, match=r"^compress: expected"):
        compressor(text)
