import numpy as np
import pytest

from cnnlab.ranks.record import Event, Message, Record


def test_a_record_counts_messages_bytes_and_seconds():
    events = [Event(0, "send", 1.0, 2.0, 1, 8), Event(1, "wait", 1.5, 4.0), Event(1, "wait", 5, 6)]
    record = Record(2, events, [Message(0, 1, 8, 1.0, 4.0), Message(0, 1, 2, 4.0, 6.0)])
    counts, sums = record.by_pair()
    np.testing.assert_array_equal(counts, [[0, 2], [0, 0]])
    np.testing.assert_array_equal(sums, [[0, 10], [0, 0]])
    assert record.seconds("wait") == pytest.approx([0, 3.5])
    assert record.seconds("wait", "send") == pytest.approx([1, 3.5])
    assert record.span() == (1.0, 6.0)
    assert Record(3).span() == (0, 0)
