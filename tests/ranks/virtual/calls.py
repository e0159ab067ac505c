"""Programs that make most calls, for virtual ranks and for real ones."""

import functools

import numpy as np

from cnnlab.ranks import mpi


def windows(comm):
    """What a rank gets from windows."""
    rank, one = comm.rank, np.ones(1)
    window = mpi.Win.Create(np.zeros(4), 8, comm=comm)
    window.Fence()
    window.Accumulate(np.full(2, rank + 1.0), 0, 2, op=mpi.SUM)
    window.Fence()
    window.Lock(0)
    seen = np.zeros(1)
    window.Get(seen, 0, 2)
    window.Flush(0)
    window.Put(seen + 1, 0, 2)
    window.Unlock(0)
    comm.Barrier()
    window.Lock_all()
    before, taken = np.zeros(1), []
    for _ in range(3):
        window.Fetch_and_op(one, before, 0, 0, mpi.SUM)
        window.Flush(0)
        taken.append(int(before[0]))
    window.Unlock_all()
    everything = sorted(number for some in comm.allgather(taken) for number in some)
    window.Lock(0, mpi.LOCK_SHARED)
    window.Get(seen, 0, 2)
    window.Unlock(0)
    window.Free()
    return float(seen[0]), everything


def mine(c, n=2):
    return np.full(n, c.rank + 1.0)


def pair(c, send, receive):
    """What rank 1 receives when rank 0 has sent."""
    if c.rank == 0:
        send()
    return receive() if c.rank == 1 else None


def into(n, call):
    """An array of n numbers that a call has filled, and what the call returns."""
    return (room := np.zeros(n)), call(room)


def described(c, receive):
    """What a status says of a message of three numbers."""

    def received():
        result = receive(s := mpi.Status())
        return result, s.Get_source(), s.Get_tag(), s.Get_count(mpi.DOUBLE)

    return pair(c, lambda: c.Send(np.ones(3), 1, 5), received)


def around(c, wait, receive="Irecv", send="Isend"):
    """What comes from the left of a ring, waited for in some way, and once more."""
    room, at = np.zeros(2), ends(c)
    left = getattr(c, receive)(room, source=at["source"])
    begun = [left, getattr(c, send)(mine(c), dest=at["dest"])]
    return wait(begun), mpi.Request.Waitall(begun), room


def until(test):
    while not test():
        pass


def asked(request):
    until(lambda: request.test()[0])
    return request.wait()


def started(requests):
    for _ in range(2):
        mpi.Request.Startall(requests)
        places = {mpi.Request.Waitany(requests) for _ in range(3)}
    return places == {0, 1, mpi.UNDEFINED}


def freed(comm, *results):
    comm.Free()
    return results


def reached(c, call, array, locks=False):
    """A rank's part of a window, and an array, after a call that puts or gets it."""
    window, part, right = mpi.Win.Create(a := mine(c), 8, comm=c), a, (c.rank + 1) % c.size
    window.Lock(right, mpi.LOCK_SHARED) if locks else window.Fence()
    getattr(window, call)([array, mpi.DOUBLE], right, 1)
    window.Unlock(right) if locks else window.Fence()
    window.Free()
    return part, array


def ends(c):
    return {"dest": (c.rank + 1) % c.size, "source": (c.rank - 1) % c.size}


def counts(c):
    return list(range(1, c.size + 1))


# Calls as students write them, by name; with those of EXPECTED they are fifty.
FIFTY = {
    "send, recv": lambda c: pair(c, lambda: c.send([7], dest=1, tag=3), lambda: c.recv(tag=3)),
    "isend, irecv": lambda c: pair(c, lambda: c.isend(7, 1).wait(), lambda: c.irecv().wait()),
    "Send, Recv": lambda c: pair(c, lambda: c.Send(np.ones(2), 1), lambda: into(3, c.Recv)),
    "[x, TYPE]": lambda c: into(2, lambda a: c.Allreduce([mine(c), mpi.DOUBLE], [a, 2])),
    "sendrecv": lambda c: c.sendrecv(c.rank, **ends(c)),
    "Sendrecv_replace": lambda c: into(2, lambda a: c.Sendrecv_replace([a, 2], **ends(c))),
    "Isend, Irecv, Waitall": lambda c: around(c, mpi.Request.Waitall),
    "Waitany": lambda c: around(c, lambda both: mpi.Request.Waitany(both[:1])),
    "waitany": lambda c: around(c, lambda both: mpi.Request.waitany(both[:1])),
    "Waitall of none": lambda c: mpi.Request.Waitall([]),
    "Testall": lambda c: around(c, lambda both: until(lambda: mpi.Request.Testall(both))),
    "test, wait": lambda c: pair(c, lambda: c.send(7, 1), lambda: asked(c.irecv(source=0))),
    "Startall": lambda c: around(c, started, "Recv_init", "Send_init"),
    "PROC_NULL": lambda c: (c.Send(mine(c), mpi.PROC_NULL), c.iprobe(source=mpi.PROC_NULL)),
    "Status": lambda c: described(c, lambda status: into(3, lambda a: c.Recv(a, status=status))),
    "Probe": lambda c: described(
        c, lambda status: (c.Probe(tag=5, status=status), into(3, c.Recv))
    ),
    "Get_processor_name": lambda c: mpi.Get_processor_name(),
    "scan, exscan": lambda c: (c.scan(c.rank + 1, op=mpi.PROD), c.exscan(c.rank)),
    "MAXLOC": lambda c: c.allreduce((-abs(c.rank - 1), c.rank), op=mpi.MAXLOC),
    "LOR": lambda c: (
        c.allreduce(c.rank, op=mpi.LOR),
        c.Allreduce(mine(c) > 1, a := np.zeros(2, "?"), mpi.LAND) or a,
    ),
    "Op.Create": lambda c: c.allreduce(str(c.rank), op=mpi.Op.Create(lambda a, b, kind: a + b)),
    "IN_PLACE": lambda c: (
        c.Allreduce(mpi.IN_PLACE, a := mine(c)) or a,
        c.Allgather(mpi.IN_PLACE, b := mine(c, 2 * c.size)) or b,
        c.Reduce(mpi.IN_PLACE if c.rank == 0 else mine(c), d := mine(c)) or d,
    ),
    "Gatherv, no places": lambda c: into(
        99, lambda a: c.Gatherv(mine(c, c.rank + 1), [a, counts(c), None, mpi.DOUBLE])
    ),
    "Allgatherv, places": lambda c: into(
        99,
        lambda a: c.Allgatherv(mine(c, c.rank + 1), [a, (counts(c), range(1, 90, 10)[: c.size])]),
    ),
    "Exscan": lambda c: into(2, lambda a: c.Exscan(mine(c), a if c.rank else mine(c))),
    "Split, Dup": lambda c: freed(h := c.Split(c.rank % 2, -c.rank), h.rank, h.Dup().Free()),
    "Create_cart": lambda c: c.Create_cart([c.size, 1]).Free(),
    "Put [x, TYPE]": lambda c: reached(c, "Put", np.ones(1)),
    "Lock, Get": lambda c: reached(c, "Get", np.ones(1), locks=True),
}


UFUNCS = {"SUM": np.add, "PROD": np.multiply, "MAX": np.maximum, "MIN": np.minimum}

# What a rank gets from its array, if rank r has row r of (P, P k) whole numbers, and from objects.
EXPECTED = {
    "Bcast": lambda a, op, root, rank: a[root],
    "Allreduce": lambda a, op, root, rank: op.reduce(a),
    "Reduce": lambda a, op, root, rank: op.reduce(a) if rank == root else None,
    "Gather": lambda a, op, root, rank: a if rank == root else None,
    "Scatter": lambda a, op, root, rank: parts(a[root], len(a))[rank],
    "Allgather": lambda a, op, root, rank: a,
    "Alltoall": lambda a, op, root, rank: np.stack([parts(row, len(a))[rank] for row in a]),
    "bcast": lambda a, op, root, rank: a[root],
    "allreduce": lambda a, op, root, rank: op.reduce(a),
    "reduce": lambda a, op, root, rank: op.reduce(a) if rank == root else None,
    "gather": lambda a, op, root, rank: list(a) if rank == root else None,
    "scatter": lambda a, op, root, rank: parts(a[root], len(a))[rank],
    "allgather": lambda a, op, root, rank: list(a),
    "alltoall": lambda a, op, root, rank: [parts(row, len(a))[rank] for row in a],
    "Scan": lambda a, op, root, rank: op.accumulate(a)[rank],
    "Reduce_scatter_block": lambda a, op, root, rank: parts(op.reduce(a), len(a))[rank],
    "Gatherv": lambda a, op, root, rank: np.concatenate(uneven(a)) if rank == root else None,
    "Allgatherv": lambda a, op, root, rank: np.concatenate(uneven(a)),
    "Scatterv": lambda a, op, root, rank: uneven(a)[rank],
    "Alltoallv": lambda a, op, root, rank: np.stack([parts(row, len(a))[rank] for row in a]),
    "Sendrecv": lambda a, op, root, rank: a[rank - 1],
}


def parts(row, size):
    return row.reshape(size, -1)


def uneven(a):
    """Of each row its beginning: none of it, one number, two and so on, as far as there are any."""
    return [row[: r % 3] for r, row in enumerate(a)]


def one_call(comm, name, a, op, root, begun, wrong=False):
    """The result of one call on a rank; if it is wrong, where MPI sees that on all ranks alike."""
    mine, named, lengths = a[comm.rank].copy(), {}, list(map(len, uneven(a)))
    if "reduce" in name.lower() or name == "Scan":
        named["op"] = getattr(mpi, op)
    if name.lower().removesuffix("v") in ("bcast", "reduce", "gather", "scatter"):
        named["root"] = root
    if name.islower():
        each = np.add if op in ("SUM", "PROD") else list  # an object that is an array, or is not
        given = list(parts(mine, comm.size)) if name in ("scatter", "alltoall") else mine
        if name in ("allreduce", "reduce") and each is list:
            return [getattr(comm, name)(int(number), **named) for number in mine]
        return getattr(comm, name)(given, **named)
    result = EXPECTED[name](a, UFUNCS[op], root, comm.rank)
    result = mine if name == "Bcast" else None if result is None else np.zeros_like(result)
    if wrong and name in ("Allreduce", "Scan"):
        result = np.zeros(mine.size + 1, a.dtype) if op == "SUM" else mine.astype(complex)
    shares = [comm.size * [mine.size // comm.size]]
    arrays = {
        "Bcast": [result],
        "Gatherv": [mine[: lengths[comm.rank]], None if result is None else [result, lengths]],
        "Allgatherv": [mine[: lengths[comm.rank]], [result, lengths]],
        "Scatterv": [[np.concatenate(uneven(a)), lengths], result],
        "Alltoallv": [[mine, *shares], [result, *shares]],
        "Sendrecv": [mine, (comm.rank + 1) % comm.size, 0, result, (comm.rank - 1) % comm.size],
    }.get(name, [mine, result])
    if begun and name != "Sendrecv":
        request = getattr(comm, "I" + name.lower())(*arrays, **named)
        if hasattr(comm, "compute"):
            comm.compute(1e-5 * comm.rank)
        request.Wait()
    else:
        getattr(comm, name)(*arrays, **named)
    return result


def drawn(comm, n=80):
    """What a rank gets from so many calls that are drawn, some of which are refused."""
    rng, results = np.random.default_rng(comm.size), []
    for _ in range(n):
        name, op = rng.choice(list(EXPECTED)), rng.choice(list(UFUNCS))
        root, k, *how = rng.integers(comm.size), rng.integers(3), *rng.integers(2, size=2)
        kind = rng.choice(["f4", "f8", "i8", "?"])
        a = rng.integers(1, 4, (comm.size, comm.size * k)).astype(kind)
        try:
            result = np.array(one_call(comm, str(name), a, str(op), int(root), *how)).tolist()
        except (ValueError, RuntimeError):  # MPI's own are such
            result = "refused"
        results.append((str(name), str(op), result))
    return results


def of_all(c, name):
    """The result of a call that all ranks make."""
    return one_call(c, name, np.arange(2.0 * c.size**2).reshape(c.size, -1), "SUM", 1, False)


FIFTY |= {name: functools.partial(of_all, name=name) for name in EXPECTED}


def listed(result):
    """Lists in place of arrays."""
    if isinstance(result, tuple | list):
        return [listed(one) for one in result]
    return result.tolist() if isinstance(result, np.ndarray) else result


def fifty(comm):
    """What a rank gets from each of them."""
    return {name: listed(call(comm)) for name, call in FIFTY.items()}
