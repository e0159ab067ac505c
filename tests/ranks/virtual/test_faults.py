"""What an error in a run says of the fault that it stands for."""

import inspect

import numpy as np
import pytest

from cnnlab.ranks.virtual import Fault, Faulty, World
from cnnlab.ranks.virtual.faults import CLASSES


def line(program, offset):
    return f"test_faults.py:{inspect.getsourcelines(program)[1] + offset}"


def unknown_call(comm):
    comm.Alltoallw()


def unknown_schedule(comm):
    from cnnlab.ranks import collectives

    collectives.allreduce(comm, np.ones(2), "magic")


def float_tag(comm):
    comm.Send(np.ones(1), 0, 1.0)


def tag_beyond_all(comm):
    comm.Recv(np.ones(1), 0, 32768)


def negative_source(comm):
    comm.Recv(np.ones(1), -9)


def object_array(comm):
    comm.Send(np.array([None]), 0)


def rank_in_place_of_a_buffer(comm):
    comm.recv(0)


def freed_before(comm):
    half = comm.Split(0)
    half.Free()
    half.Barrier()


def sent_by_one_that_is_freed(comm):
    half = comm.Split(0)
    half.Free()
    half.send("word", dest=0)


def freed_twice(comm):
    half = comm.Split(0)
    half.Free()
    half.Free()


def all_ranks_freed(comm):
    comm.Free()


@pytest.mark.parametrize(
    "program, offset, text",
    [
        (unknown_call, 1, "comm.Alltoallw: the virtual world does not know it"),
        (unknown_schedule, 3, "schedule: expected one of tree"),
        (float_tag, 1, "tag: expected a whole number from 0 to 32767, got 1.0"),
        (tag_beyond_all, 1, "tag: expected a whole number from 0 to 32767, got 32768"),
        (negative_source, 1, "source: expected a rank from 0 to 0, got -9"),
        (object_array, 1, "array: expected an array of numbers, got dtype object"),
        (rank_in_place_of_a_buffer, 1, "buf: expected None, got int; name the source"),
        (freed_before, 3, "comm: expected a communicator, got one freed at test_faults.py:"),
        (sent_by_one_that_is_freed, 3, "comm: expected a communicator, got one freed at test_"),
        (freed_twice, 3, "comm: expected a communicator, got one freed at test_faults.py:"),
        (all_ranks_freed, 1, "comm: expected a communicator of Split, got that of all ranks"),
    ],
)
def test_an_error_knows_its_fault(program, offset, text):
    with pytest.raises((AttributeError, TypeError, ValueError)) as raised:
        World(1).run(program)
    ((kind, rank, where, told),) = raised.value.faults
    assert (kind, rank, where) == ("invalid parameter", 0, line(program, offset))
    assert told.startswith(text) and str(raised.value) == told


def test_an_error_of_the_program_is_no_fault():
    with pytest.raises(ZeroDivisionError) as raised:
        World(2).run(lambda comm: 1 / 0)
    assert raised.value.faults == []


def test_of_many_faults_the_first_are_told():
    fault = Fault("request lifecycle", 0, "mine.py:1", "a send that is never waited for")
    assert str(Faulty(7 * [fault])).endswith(f"{fault}; and 3 more")


def test_every_class_is_said_in_words():
    assert len(CLASSES) == 9 and all(CLASSES.values())
