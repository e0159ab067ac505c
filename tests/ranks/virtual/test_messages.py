"""Requests: what they wait for, and what they say."""

import inspect

import numpy as np
import pytest

from cnnlab.ranks.virtual import Deadlock, Link, Status, World
from cnnlab.ranks.virtual.messages import Request

LINK = Link(latency=1.0, bandwidth=1e9, call=0.25)


def send(data):
    return Request("send", None, 0, 1, 0, 0, data.tobytes(), data)


def receive(buffer):
    return Request("receive", None, 1, 0, 0, 0, buffer=buffer)


def test_a_message_longer_than_its_place_is_refused():
    into = receive(np.zeros(1))
    with pytest.raises(ValueError, match=r"expected at most 8 bytes from rank 0, got 16: .*trunc"):
        into.take(send(np.zeros(2)))
    into.take(send(np.full(1, 2.5)))
    assert into.buffer[0] == 2.5 and into.source == 0


@pytest.mark.parametrize(
    "buffer, data, text",
    [
        (np.zeros(4), np.zeros(4, np.float32), "expected float64, got float32 from rank 0"),
        (None, np.zeros(4, int), "expected an object, got int64 from rank 0"),
    ],
)
def test_a_message_of_another_dtype_is_refused(buffer, data, text):
    with pytest.raises(ValueError, match=f"^receive: {text}, sent at "):
        receive(buffer).take(send(data))


def test_testing_lets_the_others_go_on_until_it_is_done():
    def program(comm):
        if comm.rank == 0:
            comm.compute(3.0)
            return comm.send("word", dest=1)
        request, asked = comm.irecv(source=0), 1
        while not (told := request.test())[0]:
            assert told == (False, None)
            asked += 1
        assert request.Test()  # it stays done
        return told[1], asked, comm.clock()

    word, asked, clock = World(2, LINK).run(program)[1]
    assert word == "word" and asked == 17  # a quarter of a second each, from 1/4 to 4 1/4 and more
    assert clock == 4.5


def test_a_second_wait_says_where_the_first_one_was():
    def program(comm):
        request = comm.isend("word", dest=0)
        comm.recv(source=0)
        request.Wait()
        request.Wait()

    first = inspect.getsourcelines(program)[1] + 3
    text = rf"expected one wait for each request, got one more after test_messages.py:{first}\n"
    with pytest.raises(ValueError, match=text):
        World(1).run(program)


@pytest.fixture
def impatient(monkeypatch):
    """A world that soon calls questions vain: a microsecond each, where a message takes 1,000."""
    monkeypatch.setattr("cnnlab.ranks.virtual.world.PATIENCE", 100)
    return Link(1e-3, 1e9, 1e-6)


def test_asking_is_not_in_vain_while_a_message_is_on_its_way(impatient):
    def probing(comm):
        if comm.rank == 0:
            return comm.send("word", dest=1)
        while not comm.iprobe():
            pass
        return comm.recv()

    def testing(comm):
        if comm.rank == 0:
            return comm.send("word", dest=1)
        request, done = comm.irecv(), False
        while not done:
            done, word = request.test()
        return word

    for program in (probing, testing):
        assert World(2, impatient).run(program)[1] == "word"


def test_asking_is_not_in_vain_while_another_can_go_on(impatient):
    def program(comm):
        if comm.rank == 2:
            return comm.send("word", dest=0)
        if comm.rank == 0:
            assert not comm.iprobe(source=1)
            return comm.send(comm.recv(source=2), dest=1)
        request, done = comm.irecv(source=0), False
        while not done:
            done, word = request.test()
        return word

    assert World(3, impatient).run(program)[1] == "word"


def test_asking_without_end_is_a_deadlock(impatient):
    def program(comm):
        request = comm.irecv(source=1 - comm.rank)
        while not request.test()[0]:
            pass

    with pytest.raises(Deadlock, match=r"^deadlock: rank 0 waits for rank 1 .*; rank 1 waits for"):
        World(2, impatient).run(program)


def test_statuses_say_which_message_it_was():
    def program(comm):
        if comm.rank == 2:
            comm.Send(np.ones(3, np.float32), 0, 9)
        if comm.rank:
            return None
        told, a, status = [], np.zeros(5, np.float32), Status()
        for ask in (comm.Probe, comm.Iprobe):
            assert ask(comm.ANY_SOURCE, comm.ANY_TAG, status)
            told.append((status.Get_source(), status.Get_tag(), status.Get_count()))
        comm.Recv(a, status.source, status.tag, status)
        assert not comm.Iprobe()
        assert status.Get_count(np.uint8) == 12
        return [*told, (status.source, status.tag, status.Get_count())], a.tolist()

    told, a = World(3).run(program)[0]
    assert told == 3 * [(2, 9, 3)] and a == [1, 1, 1, 0, 0]


def test_ranks_of_a_status_are_those_of_its_communicator():
    def program(comm):
        half, status = comm.Split(comm.rank % 2, -comm.rank), Status()
        if half.rank == 1:
            half.send("word", dest=0)
            return None
        return half.recv(status=status), status.source

    assert World(4).run(program) == [None, None, ("word", 1), ("word", 1)]


def test_all_are_waited_for_at_once():
    def program(comm):
        peers, status = [rank for rank in range(comm.size) if rank != comm.rank], Status()
        requests = [comm.irecv(source=rank) for rank in peers]
        sends = [comm.isend(comm.rank, dest=rank) for rank in peers]
        Request.Waitall(sends)
        assert Request.waitall(requests) == peers
        a = np.zeros(1)
        waiting = [comm.Irecv(a, comm.rank), comm.Isend(np.ones(1), comm.rank, 4)]
        Request.Waitall(waiting, [status, Status()])
        return status.tag, a[0]

    assert World(3).run(program) == 3 * [(4, 1)]


def test_a_long_message_meets_a_receive_from_any_source_while_its_rank_sends():
    def program(comm):
        a, b = np.ones(4), np.zeros(4)
        request = comm.Irecv(b) if comm.rank == 0 else None
        comm.Send(a, 1 - comm.rank)
        request.Wait() if comm.rank == 0 else comm.Recv(b, 0)
        return b.sum()

    assert World(2, Link(eager=0)).run(program) == [4, 4]


def test_what_a_request_does_not_know_is_refused_by_name():
    with pytest.raises(AttributeError, match=r"request\.Cancel: the virtual world does not know"):
        World(1).run(lambda comm: comm.irecv(source=0).Cancel())
