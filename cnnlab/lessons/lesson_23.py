"""The exercises of lesson 23."""

from cnnlab.check import collective, kinds


@kinds.kernel(
    "allreduce",
    "The plainest way is a reduction to rank 0 and a broadcast from there. It counts.",
    "Or pass everything round a ring: P − 1 times, send to the right what came from the left, with "
    "Sendrecv, and add it to what you have.",
    by=collective.kernel,
)
def allreduce(comm, array):
    """Everything goes once round the ring; Sendrecv cannot hang. Each rank adds in an order of its
    own, so the last bits may differ: the ring in blocks avoids that."""
    import numpy as np

    passing, coming = array.copy(), np.empty_like(array)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for _ in range(comm.size - 1):
        comm.Sendrecv(passing, right, 0, coming, left, 0)
        array += coming
        passing, coming = coming, passing


@kinds.formula(
    lambda rng: {
        "n_ranks": int(2 ** rng.integers(2, 12)),
        "latency": float(rng.uniform(1e-6, 1e-5)),
        "per_number": float(rng.uniform(1e-10, 1e-9)),
    },
    "Write both times from the table, and set them equal.",
    "Rabenseifner's has L log₂ P more for its rounds, and (log₂ P − 2 (P − 1)/P) γG less for each "
    "number.",
    rtol=0.02,
)
def numbers(n_ranks, latency, per_number):
    """log₂ P more rounds on one side, less traffic for each number on the other."""
    from math import log2

    rounds = log2(n_ranks)
    return rounds * latency / ((rounds - 2 * (n_ranks - 1) / n_ranks) * per_number)


@kinds.formula(
    lambda rng: {"n_ranks": int(rng.integers(2, 30)), "m": int(rng.integers(1, 100)) * 100_000},
    "How many rounds are there, and how large is a block?",
    "2 (P − 1) rounds, and in each a block of m / P numbers.",
    rtol=1e-3,
)
def sent(n_ranks, m):
    """2 (P − 1) rounds of m / P numbers."""
    return 2 * (n_ranks - 1) * m / n_ranks
