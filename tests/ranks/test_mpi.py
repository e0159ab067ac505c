import subprocess
import sys

import pytest

from cnnlab.ranks import mpi

NAMES = "from cnnlab.ranks import mpi; print(mpi.SUM, mpi.ANY_SOURCE, mpi.is_named(mpi.SUM, 'SUM'))"


def test_names_are_texts_where_mpi_does_not_run_and_its_own_where_it_does():
    run = [subprocess.check_output([sys.executable, "-c", NAMES], text=True)]
    assert run == ["SUM -2 True\n"]
    from mpi4py import MPI

    assert mpi.SUM == MPI.SUM and mpi.IN_PLACE is MPI.IN_PLACE
    assert mpi.name_of("op", MPI.MAX, mpi.REDUCTIONS) == "MAX" == mpi.name_of("op", "MAX", ("MAX",))


def test_others_are_refused_by_name():
    with pytest.raises(AttributeError, match=r"mpi\.LAND: expected one of Win, SUM"):
        _ = mpi.LAND
    with pytest.raises(ValueError, match="op: expected one of SUM, PROD, MAX, MIN, got 'LAND'"):
        mpi.name_of("op", "LAND", mpi.REDUCTIONS)
