"""The exercises of lesson 05."""

import numba
import numpy as np

from cnnlab.check import kinds, machine_code


@kinds.number(
    "For each tap of a row, rung 4 loads the tap, loads the result and stores it. And rung 5?",
    "Rung 4: 25 · 3 trips. Rung 5: 25 loads of taps, and 5 passes that load and store the result.",
    rtol=0.02,
)
def trips():
    """75 trips against 35. Compare that with the sums of both rungs in your plot."""
    return (25 * 3) / (25 + 5 * 2)


@kinds.kernel(
    "sigmoid_backward",
    "One long loop over flat arrays, one type throughout: y.reshape(y.size), and np.float32(1).",
    "Which of your numbers is a float64, or an int? A plain 1 is. It makes the arithmetic wider.",
    by=machine_code.kernel,
)
@numba.njit
def sigmoid_gradient(y, dy, dz):
    """No sum, no branch and no call stand in the way, so no permission is needed."""
    one = np.float32(1)
    y, dy, dz = y.reshape(y.size), dy.reshape(dy.size), dz.reshape(dz.size)
    for m in range(y.size):
        dz[m] = dy[m] * y[m] * (one - y[m])


@kinds.kernel(
    "conv_backward_bias",
    "A sum may not be reordered without permission. Which argument of njit gives it?",
    "njit(fastmath=True), a total in float32, and an innermost loop along memory: dz[n, f] lies in "
    "one piece.",
    by=machine_code.kernel,
)
@numba.njit(fastmath=True)
def bias_in_vectors(dz, db):
    """Vectors keep a partial sum in each lane, which is another order: hence the permission."""
    for f in range(dz.shape[1]):
        total = np.float32(0)
        for n in range(dz.shape[0]):
            row = dz[n, f].reshape(-1)
            for m in range(row.size):
                total += row[m]
        db[f] = total
