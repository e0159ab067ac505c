"""Lesson 54: Hogwild. Threads step along gradients in shared memory, and nobody asks anybody."""

import numba


@numba.njit(parallel=True)
def hogwild(places, x, y, w, steps, rate, n_threads):
    """Least squares by threads that lock nothing: one step for each sample, on all that it names.

    Sample m has the values x[m] (M,K) at `places`[m] of the parameters w, and the target y[m].
    `steps` counts, as w is written: what it lacks of M × K has got lost.
    """
    for thread in numba.prange(n_threads):
        for m in range(thread, y.size, n_threads):
            error = -y[m]
            for k in range(x.shape[1]):
                error += w[places[m, k]] * x[m, k]
            for k in range(x.shape[1]):
                w[places[m, k]] -= rate * error * x[m, k]
                steps[places[m, k]] += 1
