"""Every planted fault is named with class, rank and line, and the nearest right programs have none.

The programs of `planted` have a fault each; more stand here, whose texts matter.
"""

import inspect
import json
import re

import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.ranks import collectives
from cnnlab.ranks.schedules import SCHEDULES
from cnnlab.ranks.virtual import Deadlock, Fault, Faulty, Status, World, examine
from cnnlab.ranks.virtual.examine import alike
from cnnlab.ranks.virtual.faults import CLASSES, leaks
from cnnlab.training import train
from tests.ranks import programs
from tests.ranks.virtual.planted import PLANTED

SIZE = 3
FAULTY = [(kind, *one) for kind, planted in PLANTED.items() for one in planted]
PROGRAMS = [program for _, _, program, *_ in FAULTY]


def by_name(program):
    return getattr(program, "__name__", None)


def marked(program, mark="# here"):
    lines, first = inspect.getsourcelines(program)
    (number,) = (i for i, line in enumerate(lines, first) if line.endswith(f"{mark}\n"))
    return f"{inspect.getsourcefile(program).rpartition('/')[2]}:{number}"


@pytest.mark.parametrize("planted", FAULTY, ids=lambda planted: planted[2].__name__)
def test_a_planted_fault_is_named_with_class_rank_and_line(planted):
    kind, rank, program, *texts = planted
    got = examine(program, SIZE if kind == "message race" else 2)
    assert got and got[0][:3] == (kind, rank, marked(program)), list(map(str, got))
    assert {fault.kind for fault in got} == {kind}
    assert all(re.search(text, str(got[0])) for text in texts), str(got[0])


@pytest.mark.parametrize("program", PROGRAMS, ids=by_name)
def test_the_nearest_right_program_has_none(program):
    assert [examine(program, size, True) for size in (2, SIZE)] == [[], []]


REAL = """
import json
from mpi4py import MPI
from tests.ranks.virtual.test_faults import PROGRAMS
results = [MPI.COMM_WORLD.gather(program(MPI.COMM_WORLD, True)) for program in PROGRAMS]
if MPI.COMM_WORLD.rank == 0:
    print(json.dumps(results))
"""


@pytest.mark.mpi
def test_right_programs_do_the_same_on_real_ranks():
    out, _ = programs.run(2, "-c", REAL)
    expected = [World(2).run(program, True) for program in PROGRAMS]
    assert json.loads(out) == json.loads(json.dumps(expected))


def test_every_class_is_said_in_words_and_has_planted_faults():
    assert min(map(len, PLANTED.values())) >= 3 and all(CLASSES.values())
    assert PLANTED.keys() | {"global concurrency"} == CLASSES.keys()


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


# --- deadlocks ------------------------------------------------------------------------------------


def each_waits(comm):
    comm.Recv(np.zeros(1), (comm.rank + 1) % comm.size, 7)


def ends_early(comm):
    if comm.rank:
        comm.Recv(np.zeros(1), 0, 3)


def large_sends(comm):
    a = np.zeros(10_000)
    comm.Send(a, 1 - comm.rank)
    comm.Recv(a, 1 - comm.rank)


def waits_later(comm):
    request = comm.Irecv(np.zeros(1), 1 - comm.rank)
    request.Wait()  # here


@pytest.mark.parametrize(
    "program, size, text",
    [
        (each_waits, 3, r"rank 0 waits for rank 1 \(receive, tag 7, test_faults.py:\d+\); rank 1 "),
        (ends_early, 2, r"rank 1 waits for rank 0 which has ended \(receive, tag 3, test_faults"),
        (large_sends, 2, r"rank 0 waits for rank 1 \(send, tag 0, .*rank 1 waits for rank 0 "),
        (waits_later, 2, rf"rank 0 waits for rank 1 \(receive, tag any, {marked(waits_later)}\)"),
    ],
)
def test_a_deadlock_says_who_waits_for_whom_for_what_and_where(program, size, text):
    with pytest.raises(Deadlock, match=f"^deadlock: {text}"):
        World(size).run(program)


def other_tag(comm):
    if comm.rank:
        return comm.Recv(np.zeros(1), 0, 6)
    comm.Send(np.zeros(1), 1, 5)  # here


def other_tag_of_any(comm):
    if comm.rank:
        return comm.Recv(np.zeros(1), tag=6)
    comm.Send(np.zeros(1), 1, 5)  # here


def other_communicator(comm):
    other = comm.Dup()
    if comm.rank:
        return other.Recv(np.zeros(1), 0, 5)
    comm.Send(np.zeros(1), 1, 5)  # here


@pytest.mark.parametrize(
    "program, what",
    [
        (other_tag, "with tag 5"),
        (other_tag_of_any, "with tag 5"),
        (other_communicator, "of another communicator"),
    ],
)
def test_the_message_that_nearly_fits_is_named(program, what):
    [fault] = examine(program, 2)
    assert fault.kind == "parameter matching"
    assert f"there is a message {what} from rank 0, {marked(program)}" in fault.text


def task_farm(comm):
    """Its result does not depend on the order; who does which task does."""
    if comm.rank:
        comm.send(None, dest=0)
        while (task := comm.recv(source=0)) is not None:
            comm.send((task, task * task), dest=0)
        return None
    results, status, left = [None] * 5, Status(), comm.size - 1
    tasks = iter([*range(5), *[None] * left])
    while left:
        if done := comm.recv(status=status):
            results[done[0]] = done[1]
        comm.send(task := next(tasks), dest=status.Get_source())
        left -= task is None
    return results


def adding_farm(comm):
    status, mine, task = Status(), 0, 0
    for task in [*range(5), *[None] * (comm.size - 1)] if comm.rank == 0 else ():
        comm.recv(status=status)
        comm.send(task, dest=status.Get_source())
    while comm.rank and task is not None:
        comm.send(None, dest=0)
        mine += (task := comm.recv(source=0)) or 0
    return comm.reduce(mine)


def racing_sum(comm):
    if comm.rank:
        comm.send(str(comm.rank), dest=0)
    comm.reduce("" if comm.rank else "".join(comm.recv() for _ in range(1, comm.size)))


def test_a_farm_whose_result_does_not_depend_on_the_order_is_no_race():
    assert examine(task_farm, 3) == [] == examine(adding_farm, 3)
    [race] = examine(racing_sum, 3)
    assert race.kind == "message race" and "has another result of a collective" in race.text


def waiting(comm):
    if comm.rank in (1, 2):
        comm.Recv(np.ones(1), 3 - comm.rank, 4)  # here
    comm.Barrier()  # there


def test_a_deadlock_names_its_circle_first_and_the_collective_of_others():
    with pytest.raises(Deadlock) as raised:
        World(4).run(waiting)
    one, two, *others = str(raised.value).split("; ")
    at, there = marked(waiting), marked(waiting, "# there")
    assert one == f"deadlock: rank 1 waits for rank 2 (receive, tag 4, {at})"
    assert two == f"rank 2 waits for rank 1 (receive, tag 4, {at})"
    assert others[0] == f"rank 0 waits for rank 2 (in Barrier, {there})"
    assert raised.value.faults[0][:3] == ("call matching", 1, at)


# --- leftovers ------------------------------------------------------------------------------------


def forgetful(comm):
    if comm.rank == 0:
        comm.send("word", dest=1, tag=3)  # message
        comm.Bcast(np.ones(2))  # collective
        comm.Irecv(np.zeros(1), 1)  # request


def test_what_is_left_at_the_end_is_said_all_at_once():
    with pytest.raises(Faulty) as raised:
        World(2).run(forgetful)
    collective = "Bcast of 2 float64 with root 0: expected on all 2 ranks, never on rank 1"
    message = "a message to rank 1 with tag 3 that is never received"
    assert raised.value.faults == [
        Fault("call matching", 0, marked(forgetful, "# collective"), collective),
        Fault("call matching", 0, marked(forgetful, "# message"), message),
        Fault(
            "request lifecycle", 0, marked(forgetful, "# request"),
            "a receive that is never waited for",
        ),
    ]  # fmt: skip
    assert str(raised.value).startswith(f"call matching: rank 0, {raised.value.faults[0].line}: B")


def test_of_many_faults_the_first_are_said():
    fault = Fault("request lifecycle", 0, "mine.py:1", "a send that is never waited for")
    assert str(Faulty(7 * [fault])).endswith(f"{fault}; and 3 more")


def keeping(comm):
    halves = [comm.Split(comm.rank % 2) for _ in range(2)]  # here
    if comm.rank == 0:
        halves[0].Free()


def test_communicators_that_are_never_freed_are_named_when_asked_for():
    world = World(2)
    world.run(keeping)
    kind, text = "resource leak", "a communicator of Split is never freed"
    assert leaks(world) == [Fault(kind, rank, marked(keeping), text) for rank in (0, 1, 1)]


# --- errors of calls, and of programs -------------------------------------------------------------


def freed(comm, then):
    half = comm.Split(0)
    half.Free()
    then(half)  # here


IN_FREED = "comm: expected a communicator, got one freed at test_faults.py:"
WHOLE = "tag: expected a whole number from 0 to 32767, got"


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda comm: comm.Alltoallw(), "comm.Alltoallw: the virtual world does not know it"),
        (lambda comm: collectives.allreduce(comm, np.ones(2), "x"), "schedule: expected one of tr"),
        (lambda comm: comm.Send(np.ones(1), 0, 1.0), f"{WHOLE} 1.0"),
        (lambda comm: comm.Send(np.ones(1), 0, -5), f"{WHOLE} -5"),
        (lambda comm: comm.Recv(np.ones(1), 0, 32768), f"{WHOLE} 32768"),
        (lambda comm: comm.Send(np.ones(1), 1), "dest: expected a rank from 0 to 0, got 1"),
        (lambda comm: comm.Recv(np.ones(1), 3), "source: expected a rank from 0 to 0, got 3"),
        (lambda comm: comm.Send(np.array([None]), 0), "buf: expected an array of numbers, got dty"),
        (lambda comm: comm.recv(0), "buf: expected None, got int; name the source"),
        (lambda comm: comm.irecv(source=0).Cancel(), "request.Cancel: the virtual world does not"),
        (lambda comm: comm.Free(), "comm: expected a communicator of Split, got that of all ranks"),
        (lambda comm: comm.Bcast(), "Bcast: expected buf, root, got root"),
        (lambda comm: comm.Bcast(np.ones(1), roots=0), "Bcast: expected buf, root, got root, buf,"),
        (lambda comm: freed(comm, lambda half: half.Barrier()), IN_FREED),
        (lambda comm: freed(comm, lambda half: half.send("word", dest=0)), IN_FREED),
        (lambda comm: freed(comm, lambda half: half.Free()), IN_FREED),
    ],
)
def test_an_error_of_a_call_is_a_fault_at_the_line_of_the_program(call, text):
    with pytest.raises((AttributeError, TypeError, ValueError)) as raised:
        World(1).run(call)
    ((kind, rank, line, said),) = raised.value.faults
    assert (kind, rank) == ("invalid parameter", 0) and said == str(raised.value)
    assert line == f"test_faults.py:{inspect.getsourcelines(call)[1]}" or text == IN_FREED
    assert said.startswith(text)


def test_an_error_of_the_program_is_no_fault():
    with pytest.raises(ZeroDivisionError) as raised:
        World(2).run(lambda comm: 1 / 0)
    assert raised.value.faults == []
    with pytest.raises(ZeroDivisionError):
        examine(lambda comm: comm.rank / 0, 2)
