import numpy as np

from cnnlab.ranks.trace import Traced


class Peer:
    """A communicator that notes what it is asked to do."""

    rank, size = 1, 4

    def __init__(self):
        self.asked = []

    def Send(self, buffer, dest, tag):
        self.asked.append(("Send", buffer, dest, tag))

    def Recv(self, buffer, source, tag):
        self.asked.append(("Recv", buffer, source, tag))

    def Sendrecv(self, *arguments):
        self.asked.append(("Sendrecv", *arguments))


def test_messages_are_logged_with_their_peer_and_size_and_passed_on():
    peer, sent, received = Peer(), np.zeros(5, np.float32), np.zeros(3)
    traced = Traced(peer)
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
