"""The calls of a communicator, as mpi4py names them, made of messages from rank to rank.

Calls with a capital send arrays, those without pickle objects. All that ranks call together stands
in one table, CALLS: a call's arguments, the lengths of its arrays, and its rounds. The rounds are a
generator that yields the requests of one round and goes on when they are done, so one entry gives
calls that wait (`Allreduce`) and those that do not (`Iallreduce`). Each costs its messages.
"""

import functools
import itertools
import operator
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from cnnlab.ranks import mpi
from cnnlab.ranks.mpi import is_named, name_of
from cnnlab.ranks.schedules import NOBODY, SCHEDULES, Step
from cnnlab.ranks.virtual.messages import ANY, NULL, Begun, Waits

MODES = re.compile(r"([Ii]?)([SBRsbr])send")  # synchronous, buffered, ready
TAGS = 32768  # as many as every MPI has
NUMBERS = "biufc"  # kinds of dtype: bool, whole, real and complex
LARGE = 65536  # bytes: from here on, an allreduce sends halves of arrays instead of whole ones
ARRAYS = {"SUM": np.add, "PROD": np.multiply, "MAX": np.maximum, "MIN": np.minimum}
ARRAYS |= {"LAND": np.logical_and, "LOR": np.logical_or}
KINDS = {"SUM": "iufc", "PROD": "iufc", "MAX": "iuf", "MIN": "iuf", "LAND": "biu", "LOR": "biu"}
OBJECTS = {"SUM": operator.add, "PROD": operator.mul, "MAX": max, "MIN": min}
OBJECTS |= {"LAND": lambda a, b: bool(a and b), "LOR": lambda a, b: bool(a or b), "MINLOC": min}
OBJECTS["MAXLOC"] = lambda a, b: max(a, b, key=lambda pair: (pair[0], -pair[1]))


# --- the rounds of one rank: each yields requests, and goes on when they are done -----------------


def barrier(comm) -> Iterator:
    """In round k, a message to the rank 2^k further on."""
    distance = 1
    while distance < comm.size:
        yield comm.round(comm.rank + distance, np.empty(0), comm.rank - distance, np.empty(0))
        distance *= 2


def broadcast(comm, buf, root: int) -> Iterator:
    """Along a binomial tree: in round k, 2^k ranks send to as many others."""
    mine, distance, place = (comm.rank - root) % comm.size, 1, None if comm.pickled else buf
    while distance < comm.size:
        if mine < distance and mine + distance < comm.size:
            yield comm.round(comm.rank + distance, buf)
        elif distance <= mine < 2 * distance:
            yield (requests := comm.round(source=comm.rank - distance, into=place))
            buf = requests[0].object() if comm.pickled else buf
        distance *= 2
    return own(buf, place) if mine == 0 else buf


def gather(comm, send, root: int, recv=None) -> Iterator:
    """To the root, which receives in the order of ranks."""
    if comm.rank != root:
        yield comm.round(root, send)
        return None
    rows, shares = recv or [None] * comm.size, []
    for rank, place in enumerate(rows):
        if rank == root:
            shares.append(own(send, place))
        else:
            yield (requests := comm.round(source=rank, into=place))
            shares.append(requests[0].object())
    return shares


def scatter(comm, send, root: int, recv=None) -> Iterator:
    """From the root, which sends in the order of ranks."""
    if comm.rank != root:
        yield (requests := comm.round(source=root, into=recv))
        return requests[0].object()
    for rank, share in enumerate(one_each(comm, send)):
        if rank != root:
            yield comm.round(rank, share)
    return own(send[root], recv)


def all_to_all(comm, send, recv=None) -> Iterator:
    """In round k, each sends to the rank k further on, and receives from the one k before it."""
    rows, rank = recv or [None] * comm.size, comm.rank
    shares = {rank: own(one_each(comm, send)[rank], rows[rank])}
    for k in range(1, comm.size):
        to, source = (rank + k) % comm.size, (rank - k) % comm.size
        yield (requests := comm.round(to, send[to], source, rows[source]))
        shares[source] = requests[0].object()
    return [shares[rank] for rank in range(comm.size)]


def around(comm, send, recv) -> Iterator:
    """Around a ring: each sends on to the next what came last, until all have all parts."""
    own(send, recv[comm.rank])
    for k in range(comm.size - 1):
        part, place = (recv[(comm.rank - k - i) % comm.size] for i in (0, 1))
        yield comm.round(comm.rank + 1, part, comm.rank - 1, place)


def doubling(comm, send) -> Iterator:
    """At each step, all objects known so far, to the rank 2^k further on."""
    known, distance = {comm.rank: send}, 1
    while distance < comm.size:
        yield (requests := comm.round(comm.rank + distance, known, comm.rank - distance))
        known, distance = known | requests[0].object(), 2 * distance
    return [own(known[r], None) if r == comm.rank else known[r] for r in range(comm.size)]


def follow(comm, flat: np.ndarray, steps: Iterable[Step], op: np.ufunc, first=0) -> Iterator:
    """One rank's steps of a schedule on its elements, in place; rank `first` counts as 0 there."""
    received = np.empty_like(flat)
    for to, a, b, source, c, d, add in steps:
        into = received[c:d] if add else flat[c:d]
        to = None if to == NOBODY or a == b else to + first
        source = None if source == NOBODY or c == d else source + first
        yield comm.round(to, flat[a:b], source, into)
        if add and source is not None:
            op(flat[c:d], into, out=flat[c:d])


def allreduce(comm, send, recv, op: np.ufunc) -> Iterator:
    """Whole arrays in each round while they are short, halves and quarters of long ones."""
    flat = own(send, recv).reshape(-1)
    schedule = SCHEDULES["rabenseifner" if recv.nbytes >= LARGE else "butterfly"]
    return follow(comm, flat, schedule(comm.rank, comm.size, flat.size), op)


def reduce(comm, send, recv, op: np.ufunc, root: int) -> Iterator:
    """To the root: the first half of the schedule "tree", which then goes back to all."""
    total, n_rounds = np.array(recv if send is None else send), (comm.size - 1).bit_length()
    steps = SCHEDULES["tree"]((comm.rank - root) % comm.size, comm.size, total.size)
    yield from follow(comm, total.reshape(-1), itertools.islice(steps, n_rounds), op, root)
    if comm.rank == root:
        own(total, recv)


def scan(comm, send, recv, op: np.ufunc, exclusive: bool = False) -> Iterator:
    """From rank to rank: each adds its own numbers to the sum of those before it."""
    mine = recv if send is None else send
    before, total = np.empty_like(mine), np.array(mine)
    if comm.rank:
        yield comm.round(source=comm.rank - 1, into=before)
        op(before, mine, out=total)
    if comm.rank + 1 < comm.size:
        yield comm.round(comm.rank + 1, total)
    if comm.rank or not exclusive:
        own(before if exclusive else total, recv)


def scan_objects(comm, send, op: Callable, exclusive: bool = False) -> Iterator:
    """Of the objects of this rank and of all before it, in order; `exclusive`: without its own."""
    shares = (yield from doubling(comm, send))[: comm.rank + (not exclusive)]
    return functools.reduce(op, shares) if shares else None


def reduce_scatter(comm, send, recv, op: np.ufunc) -> Iterator:
    """Each rank gets all ranks' shares for it, and adds them up in the order of ranks."""
    shares = [np.empty_like(recv) for _ in range(comm.size)]
    yield from all_to_all(comm, send, shares)
    own(functools.reduce(op, shares), recv)


def reduce_objects(comm, send, op: Callable, root: int | None = None) -> Iterator:
    """Of all objects in the order of ranks: on the root, or on each rank."""
    shares = yield from doubling(comm, send) if root is None else gather(comm, send, root)
    return shares and functools.reduce(op, shares)


def own(share, place: np.ndarray | None):
    """A rank's own share, copied as if it had been sent; an array None is in its place already."""
    if place is None:
        return pickle.loads(pickle.dumps(share))
    if share is not None and share is not place:
        place.reshape(-1)[:] = share.reshape(-1)
    return place


def one_each(comm, shares):
    """The shares, if there is one for each rank."""
    if len(shares) != comm.size:
        raise ValueError(f"sendobj: expected one for each of {comm.size}, got {len(shares)}")
    return shares


# --- the table ------------------------------------------------------------------------------------

# An array has one share, one for each rank, or any length; or counts with it, one for each rank.
ALL, EACH, OWN, COUNTED = "all", "each", "own", "counted"
SHORT = {"sendbuf": "send", "sendobj": "send", "recvbuf": "recv", "obj": "buf"}
DEFAULTS = {"op": "SUM", "root": 0}


class Call(NamedTuple):
    """The rounds of a call that all ranks make together, and its arguments, named as in mpi4py.

    `lengths` says which of them are arrays. The first has the same length and dtype on all ranks;
    the one `at_root` counts on the root alone. With `in_place`, the data sent may lie where the
    result is to be. The rounds get an array of a share for each rank, and one with counts, as a
    list of shares, `op` as a function, and names as in SHORT.
    """

    rounds: Callable
    arguments: str = ""
    lengths: Mapping = MappingProxyType({})
    at_root: str = ""
    in_place: bool = False

    @property
    def pickled(self) -> bool:
        """Whether it sends objects, and not arrays."""
        return "obj" in self.arguments

    def bind(self, name: str, arguments: tuple, named: dict) -> dict:
        """The arguments by name. Raises TypeError for those that are missing or not known."""
        names = self.arguments.split()
        given = dict(zip(names, arguments, strict=False)) | named
        given = {key: value for key, value in DEFAULTS.items() if key in names} | given
        if len(arguments) > len(names) or given.keys() != set(names):
            raise TypeError(f"{name}: expected {', '.join(names)}, got {', '.join(given)}")
        return {key: given[key] for key in names}

    def check(self, comm, given: dict) -> str:
        """Check the arguments, in place; the text that must be the same on all ranks."""
        share, counts, asked = None, None, ""
        for name, length in self.lengths.items():
            if name == self.at_root and comm.rank != given["root"]:
                given[name] = None
            elif is_named(given[name], "IN_PLACE"):
                elsewhere = comm.rank != given.get("root", comm.rank)
                if elsewhere or name != "sendbuf" or not self.in_place:
                    raise ValueError(f"{name}: expected an array, got IN_PLACE")
                given[name] = None
            elif length == COUNTED:
                given[name] = counted(name, given[name], comm.size)
                counts = given[name][1]
            else:
                given[name] = array = checked(name, given[name], name == "recvbuf")
                if length == OWN and counts and array.size != counts[comm.rank]:
                    expected = f"expected {counts[comm.rank]} elements, as counted"
                    raise ValueError(f"{name}: {expected}, got {array.size}")
                share = fitting(name, array, length, comm.size, share)
                asked = asked or (f" of {share}" if share else "")
        sent, received = (array_of(given.get(name)) for name in ("sendbuf", "recvbuf"))
        if sent is not None is not received and sent.dtype != received.dtype:
            raise ValueError(f"recvbuf: expected {sent.dtype}, got {received.dtype}")
        if sent is not None is not received and np.may_share_memory(sent, received):
            raise ValueError("recvbuf: expected another array than sendbuf, or IN_PLACE for that")
        if "op" in given:
            op, given["op"] = operation(given["op"], received if sent is None else sent)
            asked += f" by {op}"
        return f"{asked} with root {given['root']}" if "root" in given else asked

    def start(self, comm, given: dict) -> Iterator:
        """Begin with the rounds on a communicator for them alone."""
        split = {}
        for name, value in given.items():
            if self.lengths.get(name) == EACH and value is not None:
                flat, n = value.reshape(-1), value.size // comm.size
                value = [flat[r * n : (r + 1) * n] for r in range(comm.size)]
            elif self.lengths.get(name) == COUNTED and value is not None:
                flat = value[0].reshape(-1)
                value = [flat[at : at + n] for n, at in zip(*value[1:], strict=True)]
            split[SHORT.get(name, name)] = value
        return self.rounds(comm, **split)


TO_EACH, COUNTED_TO_OWN = {"recvbuf": ALL, "sendbuf": EACH}, {"sendbuf": COUNTED, "recvbuf": OWN}
BOTH, FROM_EACH = {"sendbuf": ALL, "recvbuf": ALL}, {"sendbuf": ALL, "recvbuf": EACH}
OWN_TO_COUNTED = {"recvbuf": COUNTED, "sendbuf": OWN}
CALLS = {
    "Barrier": Call(barrier),
    "Bcast": Call(broadcast, "buf root", {"buf": ALL}),
    "Gather": Call(gather, "sendbuf recvbuf root", FROM_EACH, "recvbuf", in_place=True),
    "Scatter": Call(scatter, "sendbuf recvbuf root", TO_EACH, "sendbuf"),
    "Allgather": Call(around, "sendbuf recvbuf", FROM_EACH, in_place=True),
    "Gatherv": Call(gather, "sendbuf recvbuf root", OWN_TO_COUNTED, "recvbuf", in_place=True),
    "Scatterv": Call(scatter, "sendbuf recvbuf root", COUNTED_TO_OWN, "sendbuf"),
    "Allgatherv": Call(around, "sendbuf recvbuf", OWN_TO_COUNTED, in_place=True),
    "Alltoall": Call(all_to_all, "sendbuf recvbuf", {"sendbuf": EACH, "recvbuf": EACH}),
    "Alltoallv": Call(all_to_all, "sendbuf recvbuf", {"sendbuf": COUNTED, "recvbuf": COUNTED}),
    "Scan": Call(scan, "sendbuf recvbuf op", BOTH, in_place=True),
    "Exscan": Call(functools.partial(scan, exclusive=True), "sendbuf recvbuf op", BOTH),
    "Reduce_scatter_block": Call(reduce_scatter, "sendbuf recvbuf op", TO_EACH),
    "Allreduce": Call(allreduce, "sendbuf recvbuf op", BOTH, in_place=True),
    "Reduce": Call(reduce, "sendbuf recvbuf op root", BOTH, "recvbuf", in_place=True),
    "barrier": Call(barrier),
    "bcast": Call(broadcast, "obj root"),
    "gather": Call(gather, "sendobj root"),
    "scatter": Call(scatter, "sendobj root"),
    "allgather": Call(doubling, "sendobj"),
    "alltoall": Call(all_to_all, "sendobj"),
    "allreduce": Call(reduce_objects, "sendobj op"),
    "reduce": Call(reduce_objects, "sendobj op root"),
    "scan": Call(scan_objects, "sendobj op"),
    "exscan": Call(functools.partial(scan_objects, exclusive=True), "sendobj op"),
}


class Calls:
    """The calls of a communicator.

    A subclass has `_send` and `_receive`, which make requests; `_post` begins with one, and
    `_opened` with one that the program waits for. `_inside` gives a copy for the messages of one
    collective, `_fills` notes the array that it writes.
    """

    pickled = False  # whether `round` sends objects

    def __getattr__(self, name):
        if name in CALLS:
            return functools.partial(self._complete, name, CALLS[name])
        if name[0] == "I" and (call := name[1:].capitalize()) in CALLS:
            return functools.partial(self._begin, name, CALLS[call])
        if mode := MODES.fullmatch(name):
            send = f"{mode[1]}send" if mode[1] or name.islower() else "Send"
            return functools.partial(getattr(self, send), mode=mode[2].lower())
        raise AttributeError(f"comm.{name}: the virtual world does not know it")

    def Get_rank(self) -> int:
        """This rank's number."""
        return self.rank

    def Get_size(self) -> int:
        """The number of ranks."""
        return self.size

    def Isend(self, buf: np.ndarray, dest: int, tag: int = 0, *, mode: str = ""):
        """Begin to send an array, in one of MODES; it may be changed after `Wait`."""
        return self._opened(self._send(buf, dest, tag, mode=mode))

    def Irecv(self, buf: np.ndarray, source: int | None = None, tag: int | None = None):
        """Begin to receive into an array; it may be read after `Wait`."""
        return self._opened(self._receive(buf, source, tag))

    def Send(self, buf: np.ndarray, dest: int, tag: int = 0, *, mode: str = "") -> None:
        """Send an array; a long one waits for its receiver."""
        self._post(self._send(buf, dest, tag, mode=mode)).Wait()

    def Recv(self, buf, source: int | None = None, tag: int | None = None, status=None) -> None:
        """Receive an array."""
        self._post(self._receive(buf, source, tag)).Wait(status)

    def Sendrecv(
        self, sendbuf, dest, sendtag=0, recvbuf=None, source=None, recvtag=None, status=None
    ) -> None:
        """Send and receive at the same time, from and to two arrays."""
        into = self._receive(recvbuf, source, recvtag)
        self._exchange(into, self._send(sendbuf, dest, sendtag), status)

    def isend(self, obj, dest: int, tag: int = 0, *, mode: str = ""):
        """Begin to send an object."""
        return self._opened(self._send(obj, dest, tag, pickled=True, mode=mode))

    def irecv(self, buf=None, source: int | None = None, tag: int | None = None):
        """Begin to receive an object, which `wait` returns."""
        return self._opened(self._receive(buf, source, tag, pickled=True))

    def send(self, obj, dest: int, tag: int = 0, *, mode: str = "") -> None:
        """Send an object."""
        self._post(self._send(obj, dest, tag, pickled=True, mode=mode)).Wait()

    def recv(self, buf=None, source: int | None = None, tag: int | None = None, status=None):
        """Receive an object."""
        return self._post(self._receive(buf, source, tag, pickled=True)).wait(status)

    def sendrecv(
        self, sendobj, dest, sendtag=0, recvbuf=None, source=None, recvtag=None, status=None
    ):
        """Send an object and receive one at the same time."""
        into = self._receive(recvbuf, source, recvtag, pickled=True)
        return self._exchange(into, self._send(sendobj, dest, sendtag, pickled=True), status)

    def Sendrecv_replace(
        self, buf, dest, sendtag=0, source=None, recvtag=None, status=None
    ) -> None:
        """Send an array and receive into it what comes instead."""
        array = checked("buf", buf, writes=True)
        self.Sendrecv(array.copy(), dest, sendtag, array, source, recvtag, status)

    def Send_init(self, buf, dest: int, tag: int = 0) -> "Prepared":
        """A send that can be started again and again."""
        return Prepared(functools.partial(self.Isend, buf, dest, tag))

    def Recv_init(self, buf, source: int | None = None, tag: int | None = None) -> "Prepared":
        """A receive that can be started again and again."""
        return Prepared(functools.partial(self.Irecv, buf, source, tag))

    def iprobe(self, source: int | None = None, tag: int | None = None, status=None) -> bool:
        """Whether a message has come that such a receive would take; it stays where it is."""
        request = self._receive(None, source, tag, pickled=True)
        request.taken = None if request.peer == NULL else request.world.probe(request)
        there = request.peer == NULL or request.taken is not None
        if there and status is not None:
            request.describe(status)
        return there

    def probe(self, source: int | None = None, tag: int | None = None, status=None) -> bool:
        """Wait until a message has come that such a receive would take."""
        while not self.iprobe(source, tag, status):
            pass
        return True

    Iprobe, Probe = iprobe, probe

    def _exchange(self, into, out, status):
        out.apart(into)
        self._post(into)
        self._post(out)
        into.Wait(status)
        out.Wait()
        return into.object()

    def round(self, to=None, sent=None, source=None, into=None) -> list:
        """Post what one round has: a receive, and then a send. Ranks count around."""
        requests = []
        if source is not None:
            requests.append(self._receive(into, source % self.size, 0, self.pickled))
        if to is not None:
            requests.append(self._send(sent, to % self.size, 0, self.pickled))
        return [self._post(request) for request in requests]

    def _complete(self, name: str, call: Call, *arguments, **named):
        """Make a call that waits for its end."""
        inside, given, filled = self._called(name, call, arguments, named)
        result = finish(call.start(inside, given))
        self.world.delivered(self.me, result if inside.pickled else filled)
        return result if inside.pickled else None

    def _begin(self, name: str, call: Call, *arguments, **named):
        """Begin with a call; it works on copies, whose results are seen after `Wait`."""
        inside, given, filled = self._called(name, call, arguments, named)
        arrays = {}
        for key in call.lengths:
            if (array := array_of(given[key])) is not None:
                arrays[key] = array, (work := array.copy())
                given[key] = work if given[key] is array else (work, *given[key][1:])
        return Begun(name, inside, arrays, filled, call.start(inside, given))

    def _called(self, name: str, call: Call, arguments: tuple, named: dict) -> tuple:
        """The communicator of a call's messages alone, its arguments, and the array it fills."""
        self._entered()
        given = call.bind(name, arguments, named)
        if "root" in given:
            self._peer("root", given["root"])
        inside = self._inside(name, name + call.check(self, given))
        inside.pickled = call.pickled
        at_root = self.rank == given.get("root")
        filled = array_of(given.get("recvbuf", None if at_root else given.get("buf")))
        if filled is not None:
            self._fills(filled)
        return inside, given, filled

    def _source(self, source: int) -> int:
        """A rank to receive from, or ANY: of None, or the number of an MPI that runs."""
        if source is None or (is_whole(source) and source < 0 and source == mpi.ANY_SOURCE):
            return ANY
        return self._end("source", source)

    def _end(self, name: str, rank: int) -> int:
        """The other end of a message: a rank's number in the world, or NULL of no rank at all."""
        null = is_whole(rank) and rank < 0 and rank == mpi.PROC_NULL
        return NULL if null else self._peer(name, rank)

    def _tag(self, tag: int, receives: bool) -> int:
        """A tag, or ANY."""
        if is_whole(tag) and 0 <= tag < TAGS:
            return tag
        if receives and (tag is None or (is_whole(tag) and tag == mpi.ANY_TAG)):
            return ANY
        raise ValueError(f"tag: expected a whole number from 0 to {TAGS - 1}, got {tag!r}")

    def _peer(self, name: str, rank: int) -> int:
        """A rank's number in the world."""
        if not (is_whole(rank) and 0 <= rank < self.size):
            raise ValueError(f"{name}: expected a rank from 0 to {self.size - 1}, got {rank!r}")
        return self.members[rank]


class Prepared:
    """A message that `Start` begins with, as often as one likes: it is then like that request."""

    def __init__(self, begin: Callable):
        self.begin, self.request = begin, Waits()

    def __getattr__(self, name):
        return getattr(self.request, name)

    def Start(self) -> None:
        """Begin with it once more."""
        self.request = self.begin()

    def Free(self) -> None:
        """It is of no use from then on."""

    @staticmethod
    def Startall(prepared) -> None:
        """Begin with all of them."""
        for each in prepared:
            each.Start()


def finish(rounds: Iterator):
    """Wait for each of the rounds; the value that they return."""
    try:
        while True:
            for request in next(rounds):
                request.Wait()
    except StopIteration as end:
        return end.value


def operation(op, array: np.ndarray | None) -> tuple[str, Callable]:
    """The name of an operation on arrays such as this one, or on objects, and its function."""
    functions = OBJECTS if array is None else ARRAYS
    if array is None and callable(op) and not any(is_named(op, name) for name in OBJECTS):
        return "its own", op
    name = name_of("op", op, functions)
    if array is not None and array.dtype.kind not in KINDS[name]:
        raise ValueError(f"op: expected one for {array.dtype}, got {name}")
    return name, functions[name]


def checked(name: str, buf, writes: bool = False) -> np.ndarray:
    """The array of a buffer, which may be [array, count, type], or with one of these two alone."""
    array, numbers = described(name, buf)
    if isinstance(array, np.generic) and not writes:
        array = np.asarray(array)  # as mpi4py does
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name}: expected a NumPy array, got {type(array).__name__}")
    if array.dtype.kind not in NUMBERS:
        raise TypeError(f"{name}: expected an array of numbers, got dtype {array.dtype}")
    if not array.flags.c_contiguous:
        raise ValueError(f"{name}: expected a C-contiguous array, got strides {array.strides}")
    if writes and not array.flags.writeable:
        raise ValueError(f"{name}: expected a writeable array, got a read-only one")
    if not numbers:
        return array
    if len(numbers) > 1 or not is_whole(numbers[0]) or not 0 <= numbers[0] <= array.size:
        raise ValueError(f"{name}: expected a count of at most {array.size}, got {numbers}")
    return array.reshape(-1)[: numbers[0]]


def fitting(name: str, array: np.ndarray, length: int, size: int, share: str | None) -> str:
    """A rank's share of an array, as "4 float64"; it must be that of another array, if given."""
    n = array.size
    if length == OWN:
        return share
    if length == EACH and n % size:
        raise ValueError(f"{name}: expected a part for each of {size} ranks, got {n} elements")
    mine = f"{n // size if length == EACH else n} {array.dtype}"
    if share not in (None, mine):
        each = " for each rank" if length == EACH else ""
        raise ValueError(f"{name}: expected {share}{each}, got {n} {array.dtype}")
    return mine


def counted(name: str, buf, size: int) -> tuple:
    """The array of [array, counts], its counts and where each part begins, if that is given."""
    array, numbers = described(name, buf)
    if len(numbers) == 1 and len(numbers[0]) == 2 and np.ndim(numbers[0][0]):
        numbers = numbers[0]  # (counts, places)
    if not numbers or np.shape(numbers[0]) != (size,):
        raise ValueError(f"{name}: expected [array, counts], with {size} counts, got {numbers}")
    counts, places = list(map(int, numbers[0])), (*numbers, None)[1]
    places = [0, *np.cumsum(counts[:-1]).tolist()] if places is None else list(places)
    ends = [at + n for n, at in zip(counts, places, strict=True)]
    if min(counts) < 0 or max(ends) > array.size:
        raise ValueError(f"{name}: expected parts within {array.size} elements, got {counts}")
    return checked(name, array, name == "recvbuf"), counts, places


def described(name: str, buf) -> tuple:
    """The array of a buffer and the numbers beside it, where its type is the array's own."""
    if not isinstance(buf, tuple | list) or not buf:
        return buf, []
    array, *rest = buf
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name}: expected an array, got {type(buf).__name__}")
    if rest and (kind := mpi.dtype_of(rest[-1])):
        if kind != array.dtype:
            raise ValueError(f"{name}: expected MPI's type of {array.dtype}, got that of {kind}")
        rest.pop()
    return array, rest


def array_of(buf):
    """The array of a buffer, which may have its counts with it."""
    return buf[0] if isinstance(buf, tuple) else buf


def is_whole(number) -> bool:
    """Whether it is a whole number, Python's or NumPy's."""
    return type(number) is int or isinstance(number, np.integer)
