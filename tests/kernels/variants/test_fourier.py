import numpy as np

from cnnlab.kernels.variants import convolutions


def test_spectra_come_with_frequencies_first_and_go_back():
    x = np.random.default_rng(0).random((2, 3, 7, 9)).astype(np.float32)
    spectrum = convolutions.spectra(x, (7, 9))
    assert spectrum.shape == (7, 5, 2, 3) and spectrum.dtype == np.complex64
    assert spectrum.flags.c_contiguous  # a BLAS takes them as they are
    np.testing.assert_allclose(spectrum[0, 0], x.sum(axis=(2, 3)), rtol=1e-6)
    np.testing.assert_allclose(convolutions.maps(spectrum, (7, 9)), x, atol=1e-6)
