"""Answers to the exercises of lesson 31, right and wrong."""

import math
from collections import Counter

from cnnlab import cuda
from cnnlab.lessons.lesson_31 import butterfly, challenge_registers, fp_f, halo, race, tile_turns
from tests.check.changed import changed


def one_result(x, w, b, z, stride=1):
    cuda.load("conv").over("conv_forward", z.size, x, w, b, z, *x.shape, len(w), w.shape[2], stride)


def by_ldg(x, w, b, z, stride=1):
    """One result a thread, through the read-only cache: loads all the same."""
    kernels = cuda.Kernels(LDG)
    kernels.over("conv_forward", z.size, x, w, b, z, *x.shape, len(w), w.shape[2], stride)


def counted(pitch):
    return max(Counter((i // 8 * pitch + i % 8) % 32 for i in range(32)).values())


LDG = (cuda.SOURCES / "conv.cu").read_text(encoding="utf-8")
for old, new in (("b[f]", "__ldg(b + f)"), ("w[((f", "__ldg(w + ((f"), ("x[((n", "__ldg(x + ((n")):
    LDG = LDG.replace(old, new, 1)
LDG = LDG.replace("* K + l]", "* K + l)", 1).replace("q * S + l]", "q * S + l)", 1)
SHUFFLES = "for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffff, sum, by);"
BROADCAST = f"{SHUFFLES.replace('xor', 'down')} sum = __shfl_sync(0xffffffff, sum, 0);"
# The last barrier of the loop, and what may stand in its place.
LAST = "weights[col][i];\n        __syncthreads();"
SHARED = """
    __shared__ float sums[32];
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 31) for (int i = 0; i < 31; i++) sum += sums[i];
"""
LOOP = "for (int i = threadIdx.x; i < N * size; i += 32)"
ALONE = (LOOP, "if (threadIdx.x == 31) for (int i = 0; i < N * size; i++)")
TURNS = "float x = sum; for (int i = 1; i < 32; i++) sum += __shfl_sync(~0u, x, threadIdx.x + i);"
UP = """for (int by = 1; by < 32; by *= 2) {
        float other = __shfl_up_sync(~0u, sum, by);
        if (threadIdx.x >= by) sum += other;
    }"""
NO_TILES = (
    ("__shared__ float images[16][17], weights[16][17];", ""),
    ("images[row][col] = n < N && d < D ? x[n * D + d] : 0.0f;", ""),
    ("weights[row][col] = other < O && d < D ? w[other * D + d] : 0.0f;", ""),
    ("images[row][i]", "(first + i < D && n < N && o < O ? x[n * D + first + i]"),
    ("weights[col][i]", "w[o * D + first + i] : 0)"),
)
NO_TILE = (
    "tile[(threadIdx.y + K - 1 - k) * edge + threadIdx.x + K - 1 - l]",
    "(row < P + k && row >= k && col >= l && col < Q + l ? map[(row - k) * Q + col - l] : 0)",
)
SPOTS = ["out of bounds", "wrong sum", "wrong sum", "sound", "race"]
RIGHT = [
    (butterfly, changed(butterfly, (SHUFFLES, BROADCAST))),
    (butterfly, changed(butterfly, (SHUFFLES, TURNS))),
    (butterfly, changed(butterfly, (SHUFFLES, f"{UP} sum = __shfl_sync(~0u, sum, 31);"))),
    (race, changed(race, (LAST, "weights[col][i];\n        __syncthreads(); __syncthreads();"))),
    (tile_turns, counted),
    (fp_f, SPOTS),
    (halo, changed(halo, ("p >= 0 && p < P", "(unsigned)p < P"))),
]  # fmt: skip
WRONG = [
    (butterfly, changed(butterfly, (SHUFFLES, "")), "db["),
    (butterfly, changed(butterfly, ALONE), "not every lane adds up a share"),
    (butterfly, changed(butterfly, (SHUFFLES, UP)), "not every lane adds up a share and gets"),
    (butterfly, changed(butterfly, (SHUFFLES, SHARED)), "shared memory is used"),
    (butterfly, changed(butterfly, ("if (threadIdx.x == 31) db", "db")), "race"),
    (butterfly, changed(butterfly, ("__shfl_xor_sync", "__shfl_down_sync")), "db["),
    (butterfly, changed(butterfly, ("by = 16", "by = 8")), "db["),
    (race, changed(race, (LAST, "weights[col][i];")), "race"),
    (race, changed(race, (LAST, "weights[col][i];\n        __syncwarp();")), "race"),
    (race, changed(race, (": 0.0f;\n        __syncthreads();", ": 0.0f;")), "uninitialised read"),
    (race, changed(race, *NO_TILES), "a tile serves 0 reads"),
    (tile_turns, lambda pitch: 1 if pitch % 32 in (8, 24) else 2, "tile turns("),
    (tile_turns, lambda pitch: math.gcd(pitch, 32), "tile turns("),
    (tile_turns, lambda pitch: -(-32 // pitch), "tile turns("),
    (fp_f, [*SPOTS[:3], "bank conflict", "race"], "4 is not bank conflict"),
    (fp_f, ["race", *SPOTS[1:]], "1 is not race"),
    (fp_f, [*SPOTS[:2], "sound", *SPOTS[3:]], "3 is not sound"),
    (halo, changed(halo, ("p >= 0 && ", "")), "out of bounds"),
    (halo, changed(halo, ("i < edge * edge", "i < 64")), "uninitialised read"),
    (halo, changed(halo, ("blockIdx.y * 8 - (K - 1) + i", "blockIdx.y * 8 + i")), "dx["),
    (halo, changed(halo, ("l];\n        __syncthreads();", "l];")), "race"),
    (halo, changed(halo, NO_TILE), "a tile serves 0 reads"),
    (challenge_registers, one_result, "2.04 loads"),
    (challenge_registers, by_ldg, "2.04 loads"),
    (challenge_registers, lambda x, w, b, z, stride=1: one_result(x, w, 2 * b, z, stride), "z["),
]
