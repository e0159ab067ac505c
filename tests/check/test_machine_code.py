import numba
import numpy as np

from cnnlab import check


def test_vector_instructions_are_wanted_of_a_right_numba_kernel_only(capsys):
    @numba.njit(fastmath=True, error_model="numpy")
    def fast(y, dy, dz):
        y, dy, dz = y.reshape(y.size), dy.reshape(dy.size), dz.reshape(dz.size)
        for m in range(y.size):
            dz[m] = dy[m] * y[m] * (np.float32(1) - y[m])

    @numba.njit
    def slow(y, dy, dz):
        for i in np.ndindex(y.shape):
            dz[i] = np.float64(dy[i]) * y[i] * (1.0 - np.float64(y[i]))

    def plain(y, dy, dz):
        dz[:] = dy * y * (1 - y)

    for answer, word in (
        (fast, "vector instructions"),
        (slow, " 0 vector instructions"),
        (plain, "decorate it with @numba.njit"),
        (lambda y, dy, dz: None, "never written"),
    ):
        assert check.vectorized("sigmoid_backward", answer) is (answer is fast)
        said = capsys.readouterr().out
        assert word in said and ("✗" in said) is (answer is not fast)
