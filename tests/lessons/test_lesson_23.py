"""What lesson 23 defines is what it proves: the package's schedules, and no broken ones."""

from pathlib import Path

import nbformat
import numpy as np
import pytest

from cnnlab.lessons import lesson_23
from cnnlab.ranks import collectives, schedules
from cnnlab.ranks.virtual import World

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "23_allreduce.ipynb"
CELLS = [c for c in nbformat.read(NOTEBOOK, 4).cells if c.cell_type == "code"]
MATTER = [c.source for c in CELLS if "matter" in c.metadata.get("tags", [])]
IMPORTS = next(c.source for c in CELLS if c.source.startswith("import numpy"))
PROOF = next(c.source for c in CELLS if c.source.startswith("def prove("))
AGREEMENT = next(c.source for c in CELLS if c.source.startswith("def virtual_seconds("))


def defined(change=("", "")):
    """The names of the lesson's cells of matter; `change` replaces a text in them, once."""
    old, new = change
    assert not old or sum(source.count(old) for source in MATTER) >= 1
    names = {}
    for source in [IMPORTS, *MATTER]:
        exec(source.replace(old, new, 1) if old else source, names)
    names["schedules"] = {name: names[name] for name in schedules.SCHEDULES}
    return names


@pytest.mark.parametrize("name", schedules.SCHEDULES)
def test_a_schedule_of_the_lesson_is_that_of_the_package(name):
    here, rng = defined()[name], np.random.default_rng(23)
    for size, n in [(1, 5), *zip(rng.integers(2, 40, 12), rng.integers(0, 99, 12), strict=True)]:
        for rank in range(size):
            package = schedules.SCHEDULES[name](rank, int(size), int(n))
            assert list(here(rank, int(size), int(n))) == list(package), (rank, size, n)


def test_perform_of_the_lesson_is_that_of_the_package():
    here = defined()["perform"]

    def both(comm):
        a, b = (np.random.default_rng(comm.rank).random(50, np.float32) for _ in range(2))
        here(comm, a, schedules.rabenseifner(comm.rank, comm.size, 50))
        collectives.perform(comm, b, schedules.rabenseifner(comm.rank, comm.size, 50))
        return a.tobytes() == b.tobytes()

    assert all(World(7).run(both))


def test_the_proof_and_the_agreement_of_worlds_hold(capsys):
    names = defined()
    exec(PROOF, names)
    exec(AGREEMENT, names)
    assert "same bits" in capsys.readouterr().out


@pytest.mark.parametrize(
    "change",
    [
        ("flat[c:d] += into", "flat[c:d] = into"),
        ("comm.Recv(into, source)", "pass"),
        ("(rank - 1) % size", "(rank - 2) % size"),
        ("add=k < size - 1", "add=k < size - 2"),
        ("yield Step(source=rank + distance, d=n, add=True)", "yield IDLE"),
        ("peer, 0, n, add=True", "peer, 0, n"),
        ("yield from unfold(rank, size, n)", "pass"),
        ("(high, low) if inner & distance", "(low, high) if inner & distance"),
        ("n * (i + 1) // size", "n * (i + 1) // size - (i == 0)"),
    ],
)
def test_a_broken_cell_fails_the_proof(change):
    names = defined(change)
    with pytest.raises(Exception, match=r"."):
        exec(PROOF, names)


@pytest.mark.parametrize(
    "change", [("ALPHA + BETA * received", "BETA * received"), ("now + BETA * sent", "now")]
)
def test_a_broken_simulation_disagrees_with_the_virtual_world(change):
    names = defined(change)
    exec(PROOF, names)
    with pytest.raises(AssertionError):
        exec(AGREEMENT, names)


def test_the_stepper_has_a_frame_a_round_and_counts_what_is_sent():
    two = {"ring": schedules.ring, "rabenseifner": schedules.rabenseifner}
    shown = lesson_23.steps(two)
    assert len(shown) == 7, "before, and six rounds of the ring"
    end = "Round 6. ring: 6/4 m sent by each rank, 16 sums complete; rabenseifner: 6/4 m"
    assert end in shown.html
    half = "Round 3. ring: 3/4 m sent by each rank, 4 sums complete; rabenseifner: 4/4 m"
    assert half in shown.html
