"""Every planted fault is found and named, and nothing is found in the nearest right programs."""

import inspect
import json

import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.ranks import collectives
from cnnlab.ranks.schedules import SCHEDULES
from cnnlab.ranks.virtual import Link, World, examine
from cnnlab.ranks.virtual.examine import alike
from cnnlab.training import train
from tests.ranks import programs
from tests.ranks.virtual.planted import PLANTED

SIZE = 3
FAULTY = [(kind, *one) for kind, planted in PLANTED.items() for one in planted]
TWINS = [twin for *_, twin in FAULTY]


def by_name(program):
    return getattr(program, "__name__", None)


def marked(program):
    lines, first = inspect.getsourcelines(program)
    (number,) = (i for i, line in enumerate(lines, first) if line.endswith("# here\n"))
    return f"{inspect.getsourcefile(program).rpartition('/')[2]}:{number}"


@pytest.mark.parametrize("kind, rank, program, twin", FAULTY, ids=by_name)
def test_a_planted_fault_is_named_with_class_rank_and_line(kind, rank, program, twin):
    found = examine(program, SIZE if kind == "message race" else 2)
    assert found and found[0][:3] == (kind, rank, marked(program)), list(map(str, found))
    assert {fault.kind for fault in found} == {kind}


@pytest.mark.parametrize("twin", TWINS, ids=by_name)
def test_the_nearest_right_program_has_none(twin):
    assert [examine(twin, size) for size in (2, SIZE)] == [[], []]


REAL = """
import json
from mpi4py import MPI
from tests.ranks.virtual.test_examine import TWINS
told = [MPI.COMM_WORLD.gather(twin(MPI.COMM_WORLD)) for twin in TWINS]
if MPI.COMM_WORLD.rank == 0:
    print(json.dumps(told))
"""


@pytest.mark.mpi
def test_right_programs_do_the_same_on_real_ranks():
    out, _ = programs.run(2, "-c", REAL)
    assert json.loads(out) == json.loads(json.dumps([World(2).run(twin) for twin in TWINS]))


def test_every_class_has_three_planted_faults():
    assert min(map(len, PLANTED.values())) >= 3


# --- no false alarms ------------------------------------------------------------------------------


def all_collectives(comm):
    a, rows, root = np.arange(4.0) + comm.rank, np.zeros((comm.size, 4)), comm.size - 1
    comm.Barrier()
    comm.Bcast(a, root)
    comm.Allreduce(a.copy(), a)
    comm.Reduce(a, np.zeros(4), root=root)
    comm.Gather(a, rows, root)
    comm.Scatter(rows, a, root)
    comm.Allgather(a, rows)
    comm.allreduce(comm.gather(comm.bcast(comm.rank), root) is None)
    return rows


def all_schedules(comm):
    a = np.random.default_rng(comm.rank).random(50)
    for schedule in SCHEDULES:
        collectives.allreduce(comm, a, schedule)
    return a


def training(comm):
    how = {"batch": 20, "progress": False, "method": DataParallel(comm)}
    return train(load("digits", 60, 20), "vector", **how)


@pytest.mark.parametrize("size", [2, 5, 8])
@pytest.mark.parametrize("program", [all_collectives, all_schedules, training], ids=by_name)
def test_programs_of_the_course_have_no_fault(program, size):
    assert examine(program, size) == []


# --- what is compared -----------------------------------------------------------------------------


def test_an_error_of_the_program_is_raised():
    with pytest.raises(ZeroDivisionError):
        examine(lambda comm: comm.rank / 0, 2)


def test_runs_that_always_differ_show_no_race():
    def program(comm):
        if comm.rank == 0:
            return sum(comm.recv() for _ in range(2)), np.random.default_rng().random()
        return comm.send(comm.rank, 0)

    assert examine(program, 3) == []


def test_a_hazard_is_told_with_its_circle():
    def program(comm):
        comm.Send(np.ones(2), 1 - comm.rank)
        comm.Recv(np.ones(2), 1 - comm.rank)

    (fault,) = examine(program, 2, network=Link(eager=16))
    assert "it ends only because messages are small: deadlock: rank 0 waits" in str(fault)


class Box:
    def __init__(self, content):
        self.content, self.me = content, self


@pytest.mark.parametrize(
    "a, b, same",
    [
        (1.0, 1.0, True),
        (1, 1.0, False),
        (float("nan"), float("nan"), True),
        (np.ones(2), np.ones(2), True),
        (np.ones(2), np.ones(2, np.float32), False),
        ({"a": [np.ones(2)]}, {"a": [np.zeros(2)]}, False),
        ((1, 2), (1, 2, 3), False),
        (Box(1), Box(1), True),
        (Box(1), Box(2), False),
        (object(), object(), True),
    ],
)
def test_results_are_compared_by_their_contents(a, b, same):
    assert alike(a, b) is same
