import numpy as np
import pytest

from cnnlab.lessons.lesson_20 import TracedComm
from cnnlab.ranks.record import Event, Message, Record, record, waits


class Peer:
    """A communicator that notes what it is asked to do."""

    rank, size = 1, 4

    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        return lambda *arguments: self.asked.append((name, *arguments))


def test_messages_are_logged_with_their_peer_and_size_and_passed_on():
    peer, sent, received = Peer(), np.zeros(5, np.float32), np.zeros(3)
    traced = TracedComm(peer)
    assert (traced.rank, traced.size) == (1, 4)
    traced.Send(sent, 2, 7)
    traced.Recv(received, 3)
    traced.Sendrecv(sent, 0, 1, received, 2, 3)
    assert peer.asked == [
        ("Send", sent, 2, 7),
        ("Recv", received, 3, 0),
        ("Sendrecv", sent, 0, 1, received, 2, 3),
    ]
    kinds = [(message.kind, message.peer, message.n_bytes) for message in traced.log]
    assert kinds == [("send", 2, 20), ("receive", 3, 24), ("send", 0, 20), ("receive", 2, 24)]
    times = [time for message in traced.log for time in (message.begin, message.end)]
    assert times[:6] == sorted(times[:6])
    assert traced.log[2].begin == traced.log[3].begin  # a send and a receive at once


def test_who_receives_before_the_message_is_sent_waits():
    first = [Event(0, "send", 3.0, 3.1, 1, 8), Event(0, "receive", 3.1, 4.0, 1, 8)]
    second = [Event(1, "receive", 1.0, 3.2, 0, 8), Event(1, "send", 3.6, 3.7, 0, 8)]
    result = [(w.rank, w.peer, round(w.seconds, 6)) for w in waits([first, second])]
    assert result == [(1, 0, 2.0), (0, 1, 0.5)]


def test_a_record_of_logs_pairs_messages_and_says_what_lies_between():
    first = [Event(0, "send", 13.0, 13.5, 1, 8), Event(0, "receive", 15.0, 17.0, 1, 4)]
    second = [Event(1, "receive", 11.0, 14.0, 0, 8), Event(1, "send", 11.5, 12.0, 0, 4)]
    result = record([first, second])
    assert (result.size, result.virtual) == (2, False)
    assert sorted(result.messages) == [Message(0, 1, 8, 2.0, 3.0), Message(1, 0, 4, 0.5, 6.0)]
    assert result.seconds("between") == pytest.approx([1.5, 0])
    assert result.seconds("receive") == pytest.approx([2, 3])
    assert result.seconds("receive", "send") == pytest.approx([2.5, 3.5])
    counts, sums = result.by_pair()
    np.testing.assert_array_equal(counts, [[0, 1], [1, 0]])
    np.testing.assert_array_equal(sums, [[0, 8], [4, 0]])
    assert result.span() == (0, 6) and record([[], []]).span() == Record(3).span() == (0, 0)
