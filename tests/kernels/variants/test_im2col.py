import numpy as np

from cnnlab.kernels.variants.convolutions import fold, unfold, workspace


def test_a_column_is_a_window_and_folding_is_its_transpose():
    rng = np.random.default_rng(0)
    x = rng.random((2, 3, 7, 9)).astype(np.float32)
    columns = np.empty((3, 4, 4, 2, 4, 6), np.float32)
    unfold(x, columns)
    for n, p, q in np.ndindex(2, 4, 6):
        window = x[n, :, p : p + 4, q : q + 4]
        np.testing.assert_array_equal(columns[:, :, :, n, p, q], window)
    other, back = rng.random(columns.shape).astype(np.float32), np.empty_like(x)
    fold(other, back)
    np.testing.assert_allclose((back * x).sum(), (other * columns).sum(), rtol=1e-5)


def test_the_courses_image_is_inflated_18_times():
    filters = 6
    columns = workspace("conv_forward", 1, 1, filters, 28, 28, 5) - 4 * filters * 24 * 24
    assert round(columns / (4 * 28 * 28), 1) == 18.4
