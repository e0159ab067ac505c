"""Answers to the exercises of lesson 60, right and wrong."""

import numpy as np

from cnnlab import cuda
from cnnlab.lessons.lesson_60 import both_layers, challenge_rows_alone, diagnosis, share_of_peak


def by_view(x, K):
    seen = np.lib.stride_tricks.sliding_window_view(x, (K, K))
    return seen.transpose(2, 3, 0, 1).reshape(K * K, -1)


def edited(*changes):
    """The model answer in CUDA C, but for some of its text."""
    source = both_layers.model()()
    for before, after in changes:
        assert before in source
        source = source.replace(before, after)
    return lambda: source


def by_kernels():
    """From a cell of %%cuda, with the weights of layer 2 in shared memory."""
    shared = (
        "__shared__ float u[960];\n    for (int i = threadIdx.x; i < 960; i += 32) u[i] = v[i];"
    )
    shared += "\n    __syncthreads();\n    if (n >= N) return;"
    return cuda.Kernels(edited(("if (n >= N) return;", shared), ("v[i * 32", "u[i * 32"))())


def by_shifts(x, w):
    """Rows of taps one after the other, from a view of the image: nothing is copied at all."""
    F, K, _ = w.shape
    seen = np.lib.stride_tricks.sliding_window_view(x, K, axis=1)
    P = len(x) - K + 1
    return sum(np.stack([seen[k : k + P] @ w[f, k] for f in range(F)]) for k in range(K))


def whole_matrix(x, w):
    F, K, _ = w.shape
    return (w.reshape(F, -1) @ by_view(x, K)).reshape(F, len(x) - K + 1, -1)


def not_shifted(x, w):
    K, P = w.shape[1], len(x) - w.shape[1] + 1
    U = np.lib.stride_tricks.sliding_window_view(x, K, axis=1)[:P]
    return np.einsum("pql,fkl->fpq", U, w)


FIRST = "GPU not waited for", "call price", "unfolding left out", "compiling timed"
SPOTS = [*FIRST, "sound", "call price"]


def all_chains(registers, vectors, latency, per_cycle):
    """Without room for weights and a pixel."""
    return min(1, registers // vectors * vectors / (latency * per_cycle))


def one_pixel_short(registers, vectors, latency, per_cycle):
    return min(1, (registers // vectors - 1) * vectors / (latency * per_cycle))


def above_the_peak(registers, vectors, latency, per_cycle):
    return (registers - vectors - 1) // vectors * vectors / (latency * per_cycle)


def latency_alone(registers, vectors, latency, per_cycle):
    return min(1, (registers - vectors - 1) // vectors * vectors / latency)


def fits(registers, vectors, latency, per_cycle):
    chains = max(R * vectors for R in range(99) if (R + 1) * vectors < registers)
    return min(chains, latency * per_cycle) / (latency * per_cycle)


THROUGH_Z = ("y[j] += v[i * 32 + j] * tap;", "y[j] += v[i * 32 + j] * z[i * N + n];")
RIGHT = [
    (share_of_peak, fits),
    (both_layers, by_kernels()),
    (diagnosis, SPOTS),
    (challenge_rows_alone, by_shifts),
]
WRONG = [
    (share_of_peak, all_chains, "share"),
    (share_of_peak, one_pixel_short, "share"),
    (share_of_peak, above_the_peak, "share"),
    (share_of_peak, latency_alone, "share"),
    (both_layers, edited(("if (n >= N) return;", "")), "out of bounds"),
    (both_layers, edited(("1 / (1 + expf(-h[i]))", "h[i]")), "the numbers are not"),
    (both_layers, edited(("y[j] = c[j]", "y[j] = 0")), "the numbers are not"),
    (both_layers, edited(("(Q + 10)", "Q")), "the numbers are not"),
    (
        both_layers,
        edited(
            (
                "        EACH(j, 30) y[j] +=",
                "        z[i * N + n] = tap;\n        EACH(j, 30) y[j] +=",
            ),
            THROUGH_Z,
        ),
        "h stays in registers",
    ),
    (diagnosis, ["sound", *SPOTS[1:]], "1 is not sound"),
    (diagnosis, [SPOTS[0], "sound", *SPOTS[2:]], "2 is not sound"),
    (diagnosis, [*SPOTS[:2], "call price", *SPOTS[3:]], "3 is not call price"),
    (diagnosis, [*SPOTS[:4], "call price", SPOTS[5]], "5 is not call price"),
    (challenge_rows_alone, whole_matrix, "numbers a window in memory"),
    (challenge_rows_alone, not_shifted, "the numbers are not"),
    (challenge_rows_alone, lambda x, w: whole_matrix(x, w).reshape(len(w), -1), "expected shape"),
]
