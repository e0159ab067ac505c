import pytest

from cnnlab.data import report, report_tables

FIGURES, TABLES = report(), report_tables()


def test_there_are_eight_tables_with_what_they_were_measured_on():
    assert list(TABLES) == list(range(1, 9))
    for table in TABLES.values():
        assert table["measured_on"] and all(
            len(row) == len(table["columns"]) for row in table["rows"]
        )
    where = {number: table["measured_on"] for number, table in TABLES.items()}
    assert "Kali" in where[2] and "Kali" in where[3] and "T4" in where[8]
    assert where[1] == "not said"


def test_tables_are_as_printed_slips_included():
    assert TABLES[2]["rows"] == [[2, 1.52734, 0.76367], [4, 1.01832, 0.3545]]
    assert TABLES[3]["rows"][3] == [8, "Machine would crash", "Machine would crash"]
    assert TABLES[7]["rows"] == [[5120, 0.386624, 5507.03529, 1.07559283]]


def test_figures_are_in_seconds_and_unrounded():
    sequential, cuda = FIGURES["sequential"], FIGURES["cuda"]
    assert sequential["epoch_seconds"] == 102.317095
    assert sequential["layer_seconds"] == pytest.approx(
        {"convolution": 97.699512123, "pooling": 5.127317961, "fully connected": 2.129152015},
        rel=1e-12,
    )
    assert cuda["layer_seconds"] == pytest.approx([0.090173, 0.0051927, 0.000386624], rel=1e-12)
    assert (cuda["network_seconds"], cuda["network_speedup"]) == (2.9969857, 34.14)
    assert FIGURES["openmp"]["speedup"] == [2.72047, 2.62118, 2.158702, None]
    assert FIGURES["openmp"]["note"] == "8 threads: machine would crash"
    assert FIGURES["mpi"]["efficiency"] == [0.76367, 0.3545]


def test_the_notes_on_the_tables_are_right():
    """What a note says of a quotient can be computed from the tables."""
    assert 1.01832 / 4 == pytest.approx(0.25458) and "0.25458" in TABLES[2]["note"]
    assert (
        5127.317961 / 5.1927 == pytest.approx(987.41, abs=0.005) and "987.41" in TABLES[6]["note"]
    )
    cuda, sequential = FIGURES["cuda"], FIGURES["sequential"]
    assert sequential["epoch_seconds"] / cuda["network_seconds"] == pytest.approx(34.14, abs=0.005)
    parts = sum(sequential["layer_seconds"].values())
    assert parts - sequential["epoch_seconds"] == pytest.approx(2.639, abs=5e-4)
