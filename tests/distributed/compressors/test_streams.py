import numpy as np

from cnnlab.distributed.compressors import compressor
from cnnlab.distributed.compressors.topk import largest


def test_the_largest_and_their_places_in_order():
    places, values = largest(np.array([1, -5, 0, 3, -2], np.float32), 3)
    assert places.tolist() == [1, 3, 4] and values.tolist() == [-5, 3, -2]


def test_what_is_not_sent_stays_and_what_is_sent_goes():
    rng, made = np.random.default_rng(1), compressor("streams:0.02")(500)
    given, arrived = np.zeros((2, 500))
    for n in range(60):
        gradient = rng.standard_normal(500).astype(np.float32)
        kept = gradient.copy()
        places, values = made.choose(gradient, 1, 1)
        np.testing.assert_array_equal(gradient, kept)
        assert places.size == 10 and (np.diff(places) > 0).all() and made.n_messages == n + 1
        given += gradient
        arrived[places] += values
        np.testing.assert_allclose(arrived + made.residual, given, atol=1e-4)
        assert (made.residual[places] == 0).all()
    assert made.state["residual"] is made.residual


def test_a_number_that_is_none_is_told_once():
    made = compressor("streams:0.2")(5)
    made.choose(np.array([0, np.nan, 0, 1, 0], np.float32), 1, 1)
    assert np.isfinite(made.residual).all()
