"""The report's figures, slips included, and what its listings do when they run."""

import numpy as np
import pytest

from cnnlab import cuda
from cnnlab.data import report, report_listings

FIGURES = report()


def test_figures_are_as_printed_slips_included():
    cuda, sequential = FIGURES["cuda"], FIGURES["sequential"]
    assert FIGURES["mpi"] == {"ranks": [2, 4], "speedup": [1.52734, 1.01832]}
    assert FIGURES["openmp"]["speedup"] == [2.72047, 2.62118, 2.158702, None]
    assert cuda["layer_speedups"] == [1083.467, 986.73, 5507.03529]
    alone = np.array([*sequential["layer_seconds"].values()])
    gains = [1083.467, 987.41, 5507.03529]
    assert alone / cuda["layer_seconds"] == pytest.approx(gains, abs=0.005)
    assert sequential["epoch_seconds"] / cuda["network_seconds"] == pytest.approx(34.14, abs=0.005)
    assert alone.sum() - sequential["epoch_seconds"] == pytest.approx(2.639, abs=5e-4)


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
