import pytest

from cnnlab.data import load
from cnnlab.measure import worlds
from cnnlab.ranks.virtual import Link, World
from tests.ranks.programs import run


def test_programs_take_the_time_of_their_messages_in_the_virtual_world():
    link = Link(latency=1e-3, bandwidth=1e6, call=0.0)
    result = World(2, link).run(worlds.timed, load("digits", 64), 0.5, 1)[0]
    assert result[worlds.SHORT] == pytest.approx(2 * (1e-3 + 4e-6))
    assert result["ping-pong, 10,000 numbers"] == pytest.approx(2 * (1e-3 + 0.04))
    assert result["allreduce, 1,000 numbers"] == pytest.approx(1e-3 + 4e-3)
    assert result[worlds.COMPUTING] == pytest.approx(0.5)
    assert result["data-parallel step"] == pytest.approx(0.5 + result["allreduce, 2,428 numbers"])


PROGRAM = """
from mpi4py import MPI
from cnnlab.measure import worlds
from cnnlab.data import load
found = worlds.compare(MPI.COMM_WORLD, load("digits", 64), 2e-3, 1e6, 5)
assert bool(found) == (MPI.COMM_WORLD.rank == 0)
if found:
    print(worlds.table(found))
"""


@pytest.mark.mpi
def test_both_worlds_are_compared_on_two_ranks(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    out, _ = run(2, "-m", "mpi4py", str(tmp_path / "program.py"))
    lines = out.splitlines()
    assert len(lines) == 8 and all("µs slowed" in line and "µs virtual" in line for line in lines)
    slowed = {line[:28].strip(): float(line[28:].split()[0]) for line in lines}
    assert slowed["ping-pong, 10,000 numbers"] >= 2 * (2e3 + 4e4)  # not before its time
    assert all(slowed[name] > 2e3 for name in slowed if name != "computing of a step")
