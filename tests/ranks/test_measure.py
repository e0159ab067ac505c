"""Measured communication, and MPI by name."""

import subprocess
import sys

import pytest
from mpi4py import MPI

from cnnlab.ranks import measure, mpi


class TwiceAsSlow:
    """A world in which another rank needs twice the time of this one."""

    def Barrier(self):
        pass

    def allreduce(self, seconds, op):
        return op(seconds, 2 * seconds)


def test_calls_take_turns_and_the_slowest_rank_counts(monkeypatch):
    clock, log = iter(range(1000)), []
    monkeypatch.setattr(MPI, "Wtime", lambda: next(clock))
    monkeypatch.setattr(measure, "SHORTEST_SAMPLE", 6.0)
    calls = {name: lambda name=name: log.append(name) for name in "ab"}
    result = measure.alternately(TwiceAsSlow(), calls, repeats=2)
    # Each sample takes one second by the clock, two on the other rank: three calls fill six.
    assert "".join(log) == "aabb" + 2 * ("aaabbb")
    assert result == {name: [2 / 3, 2 / 3] for name in "ab"}
    with pytest.raises(ValueError, match="repeats: expected a whole number of at least 1, got 0"):
        measure.alternately(TwiceAsSlow(), calls, repeats=0)


def test_a_ping_pong_needs_two_ranks():
    with pytest.raises(ValueError, match="comm: expected at least two ranks, got 1"):
        measure.ping_pong(MPI.COMM_SELF, [1])


def test_mistakes_are_named():
    with pytest.raises(AttributeError, match=r"mpi\.BAND: expected one of Win, SUM"):
        _ = mpi.BAND
    with pytest.raises(ValueError, match=r"op: expected one of SUM, .* MINLOC, got 'BAND'"):
        mpi.name_of("op", "BAND", mpi.REDUCTIONS)


def test_names_are_texts_where_mpi_does_not_run_and_its_own_where_it_does():
    names = "mpi.SUM, mpi.ANY_SOURCE, mpi.is_named(mpi.SUM, 'SUM')"
    program = f"from cnnlab.ranks import mpi; print({names})"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "SUM -2 True\n"
    assert mpi.SUM == MPI.SUM and mpi.IN_PLACE is MPI.IN_PLACE
    assert mpi.name_of("op", MPI.MAX, mpi.REDUCTIONS) == "MAX" == mpi.name_of("op", "MAX", ("MAX",))
