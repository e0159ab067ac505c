"""The report's tables, slips included, and what its listings do when they run."""

import numpy as np
import pytest

from cnnlab import cuda
from cnnlab.data import report, report_listings, report_tables

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


def test_the_notes_on_the_tables_are_right():
    """What a note says of a quotient can be computed from the tables."""
    assert 1.01832 / 4 == pytest.approx(0.25458) and "0.25458" in TABLES[2]["note"]
    assert (
        5127.317961 / 5.1927 == pytest.approx(987.41, abs=0.005) and "987.41" in TABLES[6]["note"]
    )
    cuda, sequential = FIGURES["cuda"], FIGURES["sequential"]
    assert cuda["layer_seconds"] == pytest.approx([0.090173, 0.0051927, 0.000386624], rel=1e-12)
    assert FIGURES["openmp"]["speedup"] == [2.72047, 2.62118, 2.158702, None]
    assert sequential["epoch_seconds"] / cuda["network_seconds"] == pytest.approx(34.14, abs=0.005)
    parts = sum(sequential["layer_seconds"].values())
    assert parts - sequential["epoch_seconds"] == pytest.approx(2.639, abs=5e-4)


# --- listings

LISTINGS = report_listings()
RNG = np.random.default_rng(0)


def drawn(*shape):
    return RNG.uniform(0, 1, shape).astype(np.float32)


def unset(*shape):
    return np.full(shape, np.nan, np.float32)


def faults(name, *arrays, grid=None, block=None):
    """What the trace says of a listing, launched as the report says unless told otherwise."""
    listing = LISTINGS[name]
    sizes = grid or listing.grid, block or listing.block
    return [str(fault) for fault in cuda.trace_of(listing.text, name, *sizes, *arrays).faults()]


def test_there_are_seven_with_what_the_report_says_of_them():
    assert len(LISTINGS) == 7
    for name, listing in LISTINGS.items():
        assert f"void {name}(" in listing.text and listing.text.startswith("__global__")
        assert listing.section.startswith("4.3") and listing.says and listing.launch
        assert str(listing).startswith(f"Section {listing.section}: “{listing.says}”")


def test_fp_c1_sums_the_whole_image_for_every_place_and_reads_beyond_it():
    z, image, w, b = unset(6, 24, 24), drawn(28, 28), drawn(6, 5, 5), drawn(6)
    result = faults("fp_c1", image, z, w, b, grid=(1,), block=(2, 2))
    assert any("out of bounds, line 14" in fault for fault in result)
    assert len(np.unique(z[0, :2, :2])) == 1


def test_fp_s1_takes_the_largest_of_16_products_two_apart():
    x, y, w, b = drawn(6, 24, 24), unset(6, 6, 6), drawn(6, 4, 4), drawn(6)
    assert faults("fp_s1", x, y, w, b) == []
    for f, p, q in np.ndindex(6, 6, 6):
        window = x[f, 2 * p : 2 * p + 4, 2 * q : 2 * q + 4] * w[f]
        assert y[f, p, q] == pytest.approx(window.max() + b[f])


def test_bp_output_c1_reads_beyond_its_maps():
    result = faults("bp_output_c1", unset(6, 24, 24), drawn(6, 4, 4), drawn(6, 6, 6))
    assert any("reads d_preact[216]" in fault for fault in result)
    assert any("takes element 6 of an array of 6" in fault for fault in result)


def test_bp_bias_c1_is_256_times_too_large():
    db, dz = unset(6), drawn(6, 24, 24)
    assert faults("bp_bias_c1", db, dz, grid=(1,)) == []
    assert db[0] == pytest.approx(256 * dz[0].sum(), rel=1e-4)


def test_bp_output_s1_does_not_compile_and_has_220_threads():
    with pytest.raises(RuntimeError, match="invalid operands"):
        faults("bp_output_s1", unset(6, 6, 6), drawn(10, 6, 6, 6), drawn(6, 6, 6))
    listing = LISTINGS["bp_output_s1"]
    assert listing.grid[0] * listing.block[0] == 220


def test_fp_f_reads_beyond_its_maps_and_is_256_times_too_large():
    x, z, w, b = drawn(6, 6, 6), unset(10), drawn(10, 6, 6, 6), np.zeros(10, np.float32)
    result = faults("fp_f", x, z, w, b)
    assert any("reads input[216]" in fault for fault in result)
    assert any(fault.startswith("race, line 20") for fault in result)
    assert z[:6] == pytest.approx(256 * (x[..., None] * w[:6]).sum((1, 2, 3)), rel=1e-4)


@pytest.mark.slow
def test_bp_f_stores_prefix_sums():
    dw, db, dz, x = unset(10, 6, 6, 6), unset(10), drawn(10), drawn(6, 6, 6)
    result = faults("bp_f", dw, db, dz, x)
    assert any("reads input[" in fault for fault in result)
    assert any(fault.startswith("race, line 12") for fault in result)
    sums = dz[:6, None] * np.repeat(x.reshape(6, 36), 6, axis=1).cumsum(axis=1)
    assert dw[:6].reshape(6, 216) == pytest.approx(sums, rel=1e-4)
