"""Pieces of an array on many ranks: what one needs of the others', and its partial sums back.

Ranks own pieces of an axis that do not overlap. Where each needs more than it owns, or something
else, the others send it: all-gather where everybody needs all, a halo where a few rows, and nothing
where the pieces are those it owns. Backwards, ranks send what they have found for pieces of others,
who add it up: reduce-scatter where everybody needed all.
"""

from collections.abc import Sequence

import numpy as np

Range = tuple[int, int]
TAG = 78  # keeps these messages apart from the caller's


class Exchange:
    """Who sends which pieces of an axis to whom: rank r owns owned[r], and needs needed[r]."""

    def __init__(self, comm, owned: Sequence[Range], needed: Sequence[Range], axis: int):
        self.comm, self.axis, me = comm, axis, comm.rank
        pairs = zip(owned, needed, strict=True)
        self.at_home = all(a == b or not (length(a) or length(b)) for a, b in pairs)
        self.owned, self.needed = owned[me], needed[me]
        self.to = [overlap(owned[me], range_) for range_ in needed]  # by rank
        self.source = [overlap(range_, needed[me]) for range_ in owned]

    def fetch(self, own: np.ndarray) -> np.ndarray:
        """What this rank needs of the whole array, from its own piece and those of others."""
        if self.at_home:
            return own
        found = self._empty(own, self.needed)
        self._swap(own, self.owned, self.to, found, self.needed, self.source, add=False)
        return found

    def give_back(self, partial: np.ndarray) -> np.ndarray:
        """The sum, for this rank's own piece, of what the ranks have found for what they needed."""
        if self.at_home:
            return partial
        total = self._empty(partial, self.owned)
        total[...] = 0
        self._swap(partial, self.needed, self.source, total, self.owned, self.to, add=True)
        return total

    def _empty(self, like: np.ndarray, range_: Range) -> np.ndarray:
        shape = *like.shape[: self.axis], length(range_), *like.shape[self.axis + 1 :]
        return np.empty(shape, like.dtype)

    def _swap(self, out, out_range, to, into, in_range, source, add: bool) -> None:
        """Send pieces of `out`, receive pieces of `into`; each range begins at its array's 0."""
        me, arrivals, sent = self.comm.rank, [], []
        for rank, range_ in enumerate(source):
            if rank != me and length(range_):
                piece = self._empty(into, range_)
                arrivals.append((self.comm.Irecv(piece, rank, TAG), range_, piece))
        for rank, range_ in enumerate(to):
            if rank != me and length(range_):
                piece = np.ascontiguousarray(out[self._at(range_, out_range)])
                sent.append((self.comm.Isend(piece, rank, TAG), piece))
        if length(source[me]):
            into[self._at(source[me], in_range)] = out[self._at(to[me], out_range)]
        for request, range_, piece in arrivals:  # in the order of ranks: the same bits each time
            request.Wait()
            if add:
                into[self._at(range_, in_range)] += piece
            else:
                into[self._at(range_, in_range)] = piece
        for request, _ in sent:
            request.Wait()

    def _at(self, range_: Range, within: Range) -> tuple:
        return (slice(None),) * self.axis + (slice(range_[0] - within[0], range_[1] - within[0]),)


def overlap(one: Range, other: Range) -> Range:
    """What two ranges have in common; empty ranges are (0, 0)."""
    a, b = max(one[0], other[0]), min(one[1], other[1])
    return (a, b) if a < b else (0, 0)


def length(range_: Range) -> int:
    """How many elements a range has."""
    return range_[1] - range_[0]
