"""The exercises of lesson 20."""

from cnnlab.check import collective, kinds


@kinds.kernel(
    "reduce",
    "Begin plainly: rank 0 receives from all others, in turn, into an array of its own.",
    "Turn the broadcast round: the rank that received last there sends first here, and adding "
    "takes the place of copying. Mind numbers of ranks that are no power of two.",
    by=collective.kernel,
)
def reduce(comm, array):
    """A binomial tree again, with other edges: 3 tells 2 here, where it heard from 1."""
    import numpy as np

    other, distance = np.empty_like(array), 1
    while distance < comm.size:
        if comm.rank % (2 * distance) == distance:
            comm.Send(array, comm.rank - distance)
            return
        if comm.rank + distance < comm.size:
            comm.Recv(other, comm.rank + distance)
            array += other
        distance *= 2


@kinds.formula(
    lambda rng: {"n_ranks": int(rng.integers(2, 100_000))},
    "How many ranks know after one round, after two, after three?",
    "After r rounds, 2 to the r ranks know. You want the least r for which that is enough.",
)
def rounds(n_ranks):
    """The ranks that know double with each round."""
    return (n_ranks - 1).bit_length()


@kinds.formula(
    lambda rng: {
        "latency": float(rng.uniform(1e-6, 1e-5)),
        "bandwidth": float(rng.uniform(1, 20e9)),
    },
    "The transfer of s bytes takes s / bandwidth.",
    "Set s / bandwidth equal to the latency.",
)
def half_way(latency, bandwidth):
    """s / bandwidth = latency."""
    return latency * bandwidth
