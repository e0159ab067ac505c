"""Which send belongs to which receive."""

import numpy as np
import pytest

from cnnlab.ranks.virtual.mail import Mail
from cnnlab.ranks.virtual.messages import ANY, Request


def send(rank, peer, tag=0, group=0, posted=0.0, arrives=None):
    return Request("send", None, rank, peer, tag, group, b"8", posted=posted, arrives=arrives)


def receive(rank, peer, tag=ANY, group=0):
    return Request("receive", None, rank, peer, tag, group, buffer=np.zeros(1))


def met(mail, rank):
    """The next pair that is undecided, by arrival; it has met then."""
    _, out, into = min(mail.undecided(rank), key=lambda one: one[0])
    mail.pair(out, into)
    return out, into


def test_messages_of_one_rank_do_not_overtake_each_other():
    mail, first, second = Mail(), send(0, 1), send(0, 1)
    assert mail.post_send(first) is None and mail.post_send(second) is None
    assert mail.post_receive(receive(1, 0)) is first
    assert mail.post_receive(receive(1, 0)) is second and mail.left() == []


@pytest.mark.parametrize("other", [receive(1, 2), receive(1, 0, tag=5), receive(1, 0, group=1)])
def test_source_tag_and_communicator_must_fit(other):
    mail, one = Mail(), send(0, 1)
    mail.post_send(one)
    assert mail.post_receive(other) is None and mail.left() == [one]


def test_a_receive_that_waits_takes_the_next_send_that_fits():
    mail, early = Mail(), receive(1, 0, tag=7)
    assert mail.post_receive(early) is None
    assert mail.post_send(send(0, 1, tag=6)) is None
    assert mail.post_send(send(0, 1, tag=7)) is early


def test_from_any_source_the_first_to_arrive_counts():
    mail, late, soon = Mail(), send(0, 2, arrives=3.0), send(1, 2, arrives=2.0)
    for one in (late, soon):
        mail.post_send(one)
    into = receive(2, ANY)
    assert mail.post_receive(into) is None
    assert met(mail, 2) == (soon, into)


def test_from_any_source_they_do_not_overtake_each_other_either():
    """A long message is known of as it is posted, a short one only as it arrives."""
    mail, short, long = Mail(), send(0, 1, posted=1.0, arrives=9.0), send(0, 1, posted=2.0)
    for one in (short, long):
        mail.post_send(one)
    mail.post_receive(receive(1, ANY))
    assert met(mail, 1)[0] is short


def test_a_receive_competes_with_one_from_any_source_that_came_first():
    mail, any_one, first = Mail(), receive(2, ANY), receive(2, 0)
    assert mail.post_receive(any_one) is None and mail.post_receive(first) is None
    early, late = send(0, 2, arrives=1.0), send(0, 2, arrives=2.0)
    assert mail.post_send(early) is None and mail.post_send(late) is None
    assert met(mail, 2) == (early, any_one)
    assert met(mail, 2) == (late, first) and mail.undecided(2) == []


def test_a_receive_posted_later_leaves_the_message_to_the_first():
    mail, one, any_one, second = Mail(), send(0, 2, arrives=1.0), receive(2, ANY), receive(2, 0)
    mail.post_receive(any_one)
    mail.post_send(one)
    assert mail.post_receive(second) is None
    assert met(mail, 2) == (one, any_one) and mail.undecided(2) == []


def test_a_probe_finds_the_next_message_of_each_rank():
    mail, sends = Mail(), [send(0, 2, 5), send(0, 2, 6), send(1, 2, 6)]
    for one in sends:
        mail.post_send(one)
    assert [found for _, found, _ in mail.there(receive(2, ANY, 6))] == sends[1:]
    assert [found for _, found, _ in mail.there(receive(2, ANY))] == [sends[0], sends[2]]
    assert mail.left() == sends
