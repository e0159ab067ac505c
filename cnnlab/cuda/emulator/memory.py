"""Memory for kernels, with room around it that nothing else lies in."""

import ctypes
import functools
import mmap

import numpy as np

from cnnlab.cuda.arguments import address, overlapping

GUARD = 64 * 1024  # bytes: of a page on every machine, or several
STACK = 576 * 1024  # bytes of a thread: CUDA's 512 KB of local memory, calls, and the guard
NEAR = 64 * 1024  # bytes before and after each argument that may be accessed, and are recorded
APART = 16 << 30, 1 << 30, 1 << 24  # bytes between arguments: an int indexes 8 GB of floats
SECTOR = 32  # bytes: the least that a GPU fetches (CUDA C++ Best Practices Guide)
_system = ctypes.CDLL(None, use_errno=True)


def protect(start: int, size: int, access: int) -> None:
    """Let a range of memory be read and written, or not: PROT_READ | PROT_WRITE, or 0."""
    if _system.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(size), access):
        raise MemoryError(f"no memory for the emulator ({size:,} bytes)")


def reserved(size: int, access: int) -> np.ndarray:
    """Memory that takes room only where it is used; raises OSError if the addresses run out."""
    room = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, access)
    return np.frombuffer(room, np.uint8)


def spread(size: int, n: int) -> tuple[np.ndarray, int]:
    """Memory for `n` arrays of together `size` bytes, and the bytes to leave between them."""
    for apart in APART:  # some machines limit the addresses of a process
        try:
            return reserved(size + (n + 1) * apart, 0), apart
        except OSError as error:
            failed = error
    raise MemoryError(f"no memory for the emulator ({size:,} bytes)") from failed


@functools.cache
def stacks(n: int = 1024) -> np.ndarray:
    """The stacks of the threads of a block, which all libraries share; each begins with a guard."""
    room = reserved(n * STACK + GUARD, mmap.PROT_READ | mmap.PROT_WRITE)
    for number in range(n + 1):
        protect(room.ctypes.data + number * STACK, GUARD, 0)
    return room


def place(array) -> int:
    """Where an array begins, had the memory that it is part of begun at a sector, as on a GPU."""
    owner = array
    while hasattr(getattr(owner, "base", None), "base"):
        owner = owner.base
    return address(array) - address(owner) % SECTOR


class Arena:
    """Copies of a kernel's arrays, NumPy's or CuPy's, far apart; those that overlap do so here.

    `apart` is how many bytes lie between. `regions` has, for each copy, its address, its bytes, and
    the numbers of the arrays in it; `copies` the arrays there, and `windows` the memory that a
    kernel can access without harm.
    """

    def __init__(self, arrays: list):
        self.arrays = arrays
        groups = overlapping(arrays)
        starts = [min(address(arrays[i]) for i in group) for group in groups]
        ends = [max(address(arrays[i]) + arrays[i].nbytes for i in group) for group in groups]
        rooms = [-(-(b - a) // GUARD) * GUARD for a, b in zip(starts, ends, strict=True)]
        self._room, self.apart = spread(sum(rooms), len(groups))
        at, self.regions, self.windows, copies = self._room.ctypes.data + self.apart, [], [], {}
        at -= at % GUARD
        for group, start, end, room in zip(groups, starts, ends, rooms, strict=True):
            protect(at - NEAR, room + 2 * NEAR, mmap.PROT_READ | mmap.PROT_WRITE)
            self.windows.append((at - NEAR, at + room + NEAR))
            first = at + min(place(arrays[i]) for i in group) % SECTOR
            self.regions.append((first, end - start, group))
            for i in group:
                a, there = arrays[i], first + address(arrays[i]) - start
                memory = (ctypes.c_char * max(a.nbytes, 1)).from_address(there)
                copies[i] = np.frombuffer(memory, a.dtype, a.size).reshape(a.shape)
            at += room + self.apart
        self.copies = [copies[i] for i in range(len(arrays))]

    def fill(self) -> None:
        """Copy the arrays here; around them lie zeros."""
        for start, end in self.windows:
            ctypes.memset(start, 0, end - start)
        for array, copy in zip(self.arrays, self.copies, strict=True):
            copy[...] = array if isinstance(array, np.ndarray) else array.get()

    def results(self) -> bytes:
        """The bytes of all copies."""
        return b"".join(ctypes.string_at(start, size) for start, size, _ in self.regions)

    def give_back(self, constant: list[bool]) -> None:
        """Copy the results to the arrays that are not constant."""
        for array, copy, const in zip(self.arrays, self.copies, constant, strict=True):
            if isinstance(array, np.ndarray) and not const:
                array[...] = copy
            elif not const:
                array.set(copy)
