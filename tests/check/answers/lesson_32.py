"""Answers to the exercises of lesson 32, right and wrong."""

from cnnlab import cuda
from cnnlab.lessons.lesson_32 import atomic, pooling, privatised, two_stages
from tests.check.changed import changed

HEAD = """
extern "C" __global__ void my_bias(const float* dz, float* db, int N, int F, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
"""
# The first thread of all does everything: slow, and no race.
ALONE = """
    if (i > 0) return;
    for (int j = 0; j < N * F * size; j++) db[j / size % F] += dz[j];
"""


def lines(text):
    return cuda.Kernels(HEAD + text + "\n}\n")


def own(old, new=""):
    return changed(privatised, (old, new))


def stages(old, new):
    return changed(two_stages, (old, new))


# The model's loop over a map, and others in its place.
ADD = """    for (int j = threadIdx.x; j < size; j += blockDim.x)
        atomicAdd(&sum, dz[blockIdx.x * size + j]);"""
WARPS = """    float mine = 0;
    for (int j = threadIdx.x; j < size; j += blockDim.x) mine += dz[blockIdx.x * size + j];
    for (int by = 16; by > 0; by /= 2) mine += __shfl_down_sync(0xffffffff, mine, by);
    if (threadIdx.x % 32 == 0) atomicAdd(&sum, mine);"""
FIRST = "if (threadIdx.x == 0) for (int j = 0; j < size; j++) sum += dz[blockIdx.x * size + j];"
EACH = ADD.replace("&sum", "&db[blockIdx.x % F]")  # no sum of the block's own
PLAIN = "sum += dz[blockIdx.x * size + j]"


def together():
    text = two_stages.model().source.replace("if (f >= F) return;", "if (blockIdx.x > 0) return;")
    return cuda.Kernels(text.replace("float sum = 0;\n    " + SUM, TOGETHER))


SUM = "for (int n = 0; n < N; n++) sum += parts[n * F + f];\n    db[f] = sum;"
ATOMICS = "db[f] = 0; for (int n = 0; n < N; n++) atomicAdd(&db[f], parts[n * F + f]);"
# All threads of a block add atomically, in whatever order.
TOGETHER = """for (int j = f; j < F; j += blockDim.x) db[j] = 0;
    __syncthreads();
    for (int j = f; j < N * F; j += blockDim.x) atomicAdd(&db[j % F], parts[j]);"""
RIGHT = [
    (atomic, lines("if (i < N * F * size) atomicAdd(&db[i / size % F], dz[i]);")),
    (atomic, lines(ALONE)),
    (privatised, own(ADD, WARPS)),
    (privatised, own(ADD, FIRST)),
    (two_stages, stages("int n = 0; n < N; n++", "int n = N - 1; n >= 0; n--")),
]
WRONG = [
    (atomic, lines("if (i < N * F * size) db[i / size % F] += dz[i];"), "numbers are right, but"),
    (atomic, lines("atomicAdd(&db[i / size % F], dz[i]);"), "out of bounds"),
    (atomic, lines("if (i < N * F * size) atomicAdd(&db[i % F], dz[i]);"), "db["),
    (
        atomic,
        lines(
            "if (i == 0) db[0] = 0;"
            "else if (i < N * F * size) atomicAdd(&db[i / size % F], dz[i]);"
        ),
        "race",
    ),
    (pooling, "sums, stride 4", "pooling: sums"),
    (pooling, "maxima, stride 4", "pooling: maxima"),
    (pooling, "maximum", "expected one of sums, stride 4"),
    (privatised, own("if (threadIdx.x == 0) sum = 0;"), "uninitialised read"),
    (privatised, own("sum = 0;\n    __syncthreads();", "sum = 0;"), "race"),
    (privatised, own("    __syncthreads();\n    if", "    if"), "race"),
    (privatised, own("atomicAdd(&sum, dz[blockIdx.x * size + j])", PLAIN), "race"),
    (privatised, own("atomicAdd(&db[blockIdx.x % F], sum)", "db[blockIdx.x % F] += sum"), "race"),
    (privatised, own("blockIdx.x % F", "blockIdx.x / N"), "db["),
    (privatised, own("j < size", "j <= size"), "out of bounds"),
    (privatised, own(ADD, EACH), "write"),
    (privatised, own("if (threadIdx.x == 0) atomicAdd(&db", "if (true) atomicAdd(&db"), "db["),
    (two_stages, stages("if (i >= N * F) return;", ""), "out of bounds"),
    (two_stages, stages("j < size", "j < size - 1"), "db["),
    (two_stages, stages("parts[n * F + f]", "parts[f * N + n]"), "db["),
    (two_stages, stages(SUM, ATOMICS), "an atomic is used"),
    (two_stages, together(), "different sums"),
]  # fmt: skip
