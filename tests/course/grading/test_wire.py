"""What crosses the wall: plain data and arrays, in place, and nothing else."""

import socket
import threading

import numpy as np
import pytest

from cnnlab.check.inputs import guarded
from cnnlab.course.grading.values import Broken, of_kind
from cnnlab.course.grading.wire import HEAD, Peer, Raised
from cnnlab.lessons.lesson_50 import Counted, Tally


@pytest.fixture
def talk():
    """A function that gives the grader's end, with an answer at the other."""
    ends = []

    def start(answer):
        ours, theirs = socket.socketpair()
        ends.extend((ours, theirs))
        other = Peer(theirs, own={0: answer})

        def serve():
            try:
                while True:
                    other.serve(*other.receive())
            except Broken:
                return

        threading.Thread(target=serve, daemon=True).start()
        return Peer(ours, shares=True)

    yield start
    for end in ends:
        end.close()


VALUES = [
    None, True, 3, -(10**30), 1.5, float("inf"), "ä\n", [1, [2]], (1, "a"), {1, 2}, ...,
    {("a", 1): [2.5], "b": {}}, np.float32(1.5), np.int64(-1), np.bool_(True),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_a_value_comes_back_as_it_was(value, talk):
    got = talk(lambda given: given).call("call", 0, [value], {})
    assert got == value and type(got) is type(value)


def test_arrays_are_changed_in_place_and_keep_what_lies_around_them(talk):
    base = np.zeros((2, 3, 4), np.float32)
    z = guarded(np.arange(6, dtype=np.float32).reshape(2, 3), 7)

    def answer(part, other, z):
        part += 1
        other[:] = part
        z[:] = 5
        np.lib.stride_tricks.as_strided(z, (1,), (4,))  # a view is no copy
        z.base.view(np.float32)[0] = -1  # outside of it
        return part.sum()

    got = talk(answer).call("call", 0, [base[0, :, ::2], base[1, :, 1::2], z], {})
    assert got == 6 and base.sum() == 12 and (base[0, :, ::2] == 1).all()
    assert (z == 5).all() and z.base[0] == -1 and (z.base[1:64] == 7).all()


def test_lists_dicts_and_sets_are_changed_in_place(talk):
    def answer(a, b, c):
        a.append(3)
        b["k"] = a
        c.discard(1)

    a, b, c = [1], {}, {1, 2}
    talk(answer).call("call", 0, [a, b, c], {})
    assert (a, b, c) == ([1, 3], {"k": [1, 3]}, {2})


def test_functions_and_numbers_that_count_stay_with_the_grader(talk):
    tally, x = Tally(), np.ones(3)

    def kernel(a, out):
        out[:] = 2 * a

    def answer(kernel, x, number):
        kernel(x, x)
        return np.float64(2) * number * number + 1

    got = talk(answer).call("call", 0, [kernel, x, Counted(3, tally)], {})
    assert (x == 2).all() and got.value == 19 and tally.products == 1


def test_what_is_raised_has_its_kind_and_its_words(talk):
    with pytest.raises(Raised) as caught:
        talk(lambda: 1 / 0).call("call", 0, [], {})
    assert (caught.value.kind, caught.value.text) == ("ZeroDivisionError", "division by zero")
    with pytest.raises(Raised, match="got object"):
        talk(lambda: object()).call("call", 0, [], {})


@pytest.mark.parametrize(
    "reply",
    [
        b'{"sizes": []}', b'{"sizes": [], "after": ["none"]}',
        b"[]", b"{", b'{"sizes": [-1]}', b'{"sizes": []}' + b"x", b'{"sizes": "ab"}',
        b'{"sizes": [], "after": ["list", []], "value": ["array", 0, "O", [1], [8], 0]}',
        b'{"sizes": [], "after": ["list", []], "value": ["array", 0, "<f8", [1], [8], 0]}',
        b'{"sizes": [], "after": ["list", []], "value": ["yours", 7]}',
        b'{"sizes": [], "after": ["list", []], "value": ["mine", 7, true]}',
        b'{"sizes": [], "after": ["list", []], "value": ["pickle", "x"]}',
        b'{"sizes": [], "after": ["list", []], "value": ["number", "<f8", "00"]}',
    ],
)  # fmt: skip
def test_a_forged_reply_is_refused(reply):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(HEAD.pack(len(reply), 0) + reply)
        with pytest.raises(Broken):
            Peer(ours, shares=True).call("call", 0, [1], {})


@pytest.mark.parametrize(
    "text", ["O", "|O8", "V8", "U4", "M8[s]", "f8,f8", "float64", None, ["f8"]]
)
def test_types_of_numbers_are_all_that_an_array_may_hold(text):
    with pytest.raises(ValueError):
        of_kind(text)
    assert of_kind("<f8") == np.float64


def test_a_length_that_nobody_can_hold_is_refused_before_it_is_read():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(HEAD.pack(2**62, 2**62))
        with pytest.raises(Broken, match="more than 256 MB"):
            Peer(ours, shares=True).call("call", 0, [], {})
