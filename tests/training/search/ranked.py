"""A search by the ranks of mpiexec: rank 0 prints what was told."""

import json

from cnnlab.ranks import world
from cnnlab.training.search import search_on
from tests.training.search.examples import hill, searches

if __name__ == "__main__":
    comm = world()
    done = search_on(comm, searches()["halving"] if comm.rank == 0 else None, hill)
    if comm.rank == 0:
        print(json.dumps([[one.trial.number, one.score, one.report["rank"]] for one in done]))
