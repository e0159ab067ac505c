import io

import pytest

from cnnlab.data import load
from cnnlab.measure import EPOCH, FLOPS, bench, layer_shapes, machine
from cnnlab.measure.timing import Timing


@pytest.fixture(scope="module")
def measured():
    data, said = load("digits", 64, 10), io.StringIO()
    result = bench.run(["vector", "loops"], data, batch=16, repeats=3, progress=said)
    assert said.getvalue().startswith("measuring whole steps in this process, then layers\n")
    return result


def test_every_contestant_has_a_row(measured):
    assert [row["kernels"] for row in measured["results"]] == ["vector", "loops"]
    assert measured["machine"] == machine.describe()
    for row in measured["results"]:
        low, high = row["seconds_interval"]
        assert low <= row["seconds_per_epoch"] <= high and len(row["samples"]) == 3
        assert row["images_per_second"] == pytest.approx(EPOCH / row["seconds_per_epoch"])
        assert row["gflops"] == pytest.approx(FLOPS / row["seconds_per_epoch"] / 1e9)
        assert 0 < row["peak_fraction"] < 1.5
        assert set(row["layers"]) == set(layer_shapes(1))
        assert (row["batch"], row["n_threads"], row["n_images"]) == (16, 1, 60_000)


def test_speedups_are_over_loops_or_else_the_first(measured, monkeypatch):
    vector, loops = measured["results"]
    assert measured["ratio_to"] == loops["ratio_to"] == "loops" and loops["ratio"] == 1
    assert vector["ratio_interval"][0] <= vector["ratio"] <= vector["ratio_interval"][1]

    def epochs(processes, names, *_):
        facts = {name: {"n_threads": 1, "machine": "here"} for name in names}
        return {name: Timing(name, (2.0,)) for name in [*names, bench.PEAK]}, facts

    monkeypatch.setattr(bench, "fresh_epochs", epochs)
    monkeypatch.setattr(bench, "layers", lambda *_: {})
    result = bench.run(["vector", "threads"], load("digits", 64, 10), progress=io.StringIO())
    assert result["ratio_to"] == "vector" and result["results"][0]["layers"] == {}


ROW = {
    "kernels": "loops", "batch": 64, "seconds_per_epoch": 12.34, "seconds_interval": [12.0, 13.0],
    "gflops": 1.84, "peak_fraction": 0.021, "ratio": 1.0, "ratio_interval": [1.0, 1.0],
    "layers": {"conv_forward": 5.0, "sigmoid": 1.25}, "n_threads": 1,
    "machine": "here",
}  # fmt: skip
FUSED = ROW | {"kernels": "device, fused", "ratio": 101.0, "ratio_interval": [99, 105]}
FUSED["layers"] = {}


def test_the_table_aligns_its_columns_and_lists_operations():
    text = bench.table(
        {"results": [ROW, FUSED], "ratio_to": "loops", "peak_gflops": 87.6, "bound": None}
    )
    first, *lines = text.split("\n")
    assert first.startswith("An epoch of 60,000 images at batch 64, ") and "88 GFLOP/s" in first
    assert lines == [
        "                       seconds  GFLOP/s  of peak  times faster than loops",
        "loops          12.3 (12 to 13)      1.8       2%  1 (1 to 1)",
        "device, fused  12.3 (12 to 13)      1.8       2%  101 (99 to 105)",
        "",
        "seconds by operation  loops",
        "conv_forward              5",
        "sigmoid                1.25",
    ]


def test_a_batch_has_at_most_as_many_images_as_there_are():
    with pytest.raises(ValueError, match=r"^batch: expected at most the 64 images, got 65$"):
        bench.run(["vector"], load("digits", 64, 10), batch=65, progress=io.StringIO())


@pytest.mark.parametrize("bound, quiet", [(0.98, True), (0.9, False)])
def test_threads_are_compared_with_what_the_cores_allow(bound, quiet):
    one = ROW | {"kernels": "vector", "seconds_per_epoch": 2.0}
    two = ROW | {"kernels": "threads", "seconds_per_epoch": 1.25, "n_threads": 2}
    lines = bench.efficiencies(
        {"results": [ROW, one, two], "bound": bound, "machine": {"cpu": "here"}}
    )
    assert ("not quiet" in lines[0]) != quiet and f"{bound:.2f} of the speed" in lines[0]
    assert lines[1:] == [
        f"threads on 2 threads: efficiency 0.80 against vector, {0.8 / bound:.2f} of that bound."
    ]
    assert bench.efficiencies({"results": [two], "bound": None}) == []


@pytest.mark.parametrize("second, kept", [(0.8, 0.9), (0.95, 0.95)])
def test_a_machine_that_is_not_quiet_is_measured_again_and_the_better_run_kept(
    second, kept, monkeypatch
):
    bounds, said = [0.9, second], io.StringIO()

    def epochs(processes, names, *_):
        bound = bounds.pop(0)
        times = {"vector": bound, "peak": 0.1, bench.ALONE: bound, bench.TOGETHER: 1}
        facts = {"vector": {"n_threads": 1, "machine": "here"}}
        return {name: Timing(name, (time,)) for name, time in times.items()}, facts

    monkeypatch.setattr(bench, "fresh_epochs", epochs)
    monkeypatch.setattr(bench, "layers", lambda *_: {})
    result = bench.run(["vector"], load("digits", 64, 10), progress=said)
    assert result["bound"] == result["results"][0]["seconds_per_epoch"] == kept and not bounds
    assert "not quiet: networks on their own, one a core, have 0.90" in said.getvalue()
