"""Answers to the exercises of lesson 31, right and wrong."""

from cnnlab import cuda
from cnnlab.lessons.lesson_31 import halo, padding, pixels, race, rounds, shuffle


def changed(exercise, *pairs):
    """The model answer with pieces of its text replaced."""
    text = exercise.model().source
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return cuda.Kernels(text)


SHUFFLES = "for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(0xffffffff, sum, by);"
# The last barrier of the loop, and what may stand in its place.
LAST = "weights[col][i];\n        __syncthreads();"
SHARED = """
    __shared__ float sums[32];
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) for (int i = 1; i < 32; i++) sum += sums[i];
"""
RIGHT = [
    (shuffle, changed(shuffle, ("__shfl_down_sync", "__shfl_xor_sync"))),
    (race, changed(race, (LAST, "weights[col][i];\n        __syncthreads(); __syncthreads();"))),
    (padding, changed(padding, ("pitch = 24", "pitch = edge <= 8 ? 8 : 24"))),
    (padding, changed(padding, ("pitch = 24", "pitch = (edge + 31) / 32 * 32 + 8"))),
    (halo, changed(halo, ("p >= 0 && p < P", "(unsigned)p < P"))),
    (rounds, 10),
    (pixels, 400 / 256),
]  # fmt: skip
WRONG = [
    (shuffle, changed(shuffle, (SHUFFLES, "")), "db["),
    (shuffle, changed(shuffle, (SHUFFLES, SHARED)), "shared memory is used"),
    (shuffle, changed(shuffle, ("if (threadIdx.x == 0) db", "db")), "race"),
    (race, changed(race, (LAST, "weights[col][i];")), "race"),
    (race, changed(race, (LAST, "weights[col][i];\n        __syncwarp();")), "race"),
    (race, changed(race, (": 0.0f;\n        __syncthreads();", ": 0.0f;")), "uninitialised read"),
    (padding, changed(padding, ("pitch = 24", "pitch = edge")), "takes 2 turns"),
    (padding, changed(padding, ("pitch = 24", "pitch = 8")), "race"),
    (halo, changed(halo, ("p >= 0 && ", "")), "out of bounds"),
    (halo, changed(halo, ("i < edge * edge", "i < 64")), "uninitialised read"),
    (halo, changed(halo, ("blockIdx.y * 8 - (K - 1) + i", "blockIdx.y * 8 + i")), "dx["),
    (halo, changed(halo, ("l];\n        __syncthreads();", "l];")), "race"),
    (rounds, 1023, "too large"),
    (pixels, 1, "too small"),
]
