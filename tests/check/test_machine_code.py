import numba
import numpy as np

from cnnlab import check
from cnnlab.kernels import reference


def test_vector_instructions_are_wanted_of_a_right_numba_kernel_only(capsys):
    @numba.njit(fastmath=True, error_model="numpy")
    def fast(y, dy, dz):
        y, dy, dz = y.reshape(y.size), dy.reshape(dy.size), dz.reshape(dz.size)
        for m in range(y.size):
            dz[m] = dy[m] * y[m] * (np.float32(1) - y[m])

    @numba.njit
    def slow(y, dy, dz):
        for n, c, h in np.ndindex(y.shape):
            dz[n, c, h] = dy[n, c, h] * y[n, c, h] * (1.0 - np.float64(y[n, c, h]))

    for answer, word in (
        (fast, "vector instructions"),
        (slow, " 0 vector instructions"),
        (reference.sigmoid_backward, "decorate it with @numba.njit"),
        (lambda y, dy, dz: None, "never written"),
    ):
        assert check.vectorized("sigmoid_backward", answer) is (answer is fast)
        said = capsys.readouterr().out
        assert word in said and ("✗" in said) is (answer is not fast)
