"""A search of the race as a job: `mpiexec -n 3 python -m cnnlab.measure.search_job population`.

Rank 0 leads, the others train. With `--journal FILE` it goes on where a killed one was, on any
number of ranks.
"""

import argparse
from collections.abc import Sequence

from cnnlab.measure.search_race import leaders, searches, trainer
from cnnlab.ranks import job
from cnnlab.training.search import Here, Journal, run, search_on


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a search and print its winner; see `--help`."""
    parser = argparse.ArgumentParser(prog="search_job", description="Search on the digits.")
    parser.add_argument("method", choices=list(searches(0)))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--journal", metavar="FILE", help="note all, and go on from what it says")
    chosen = parser.parse_args(arguments)
    with job.together() as comm:
        task, journal = trainer(), None
        if comm.rank == 0:
            about = {"train": len(task.data.train_images), "held out": len(task.data.test_images)}
            search = searches(chosen.seed)[chosen.method]
            journal = Journal(search, chosen.journal, about)
            print(f"{len(journal.done)} trials told before")
        done = run(journal, Here(task)) if comm.size == 1 else search_on(comm, journal, task)
        if done:
            best = leaders(done)[-1]
            print(f"{len(done)} trials, number {best.trial} is the best: "
                  f"{best.score:.1%} held out, {best.test:.1%} test")  # fmt: skip


if __name__ == "__main__":
    main()
