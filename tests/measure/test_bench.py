import json
import os

import numpy as np
import pytest

from cnnlab import measure
from cnnlab.data import load
from cnnlab.kernels import KERNELS
from cnnlab.measure import EPOCH, bench, machine, timing
from cnnlab.measure.bench import Contestant
from cnnlab.measure.timing import Timing
from cnnlab.network import NETWORKS, AveragePool, Conv, Dense, MaxPool, Network, ReLU, Sigmoid
from cnnlab.training import RATE, method


def contestant(name, n_images, batch, n_threads=1):
    return Contestant(KERNELS[name], load("digits", n_images, 10), batch, n_threads)


def test_batches_cycle_through_all_images(monkeypatch):
    monkeypatch.setattr(method, "IN_A_ROW", 45)
    one = contestant("loops", 50, 20)
    first, second, third = (one.next_batches() for _ in range(3))
    assert len(set(first) | set(second)) == 40 and (first == third).all()
    many = contestant("vector", 50, 20)
    assert many.n_steps == 2 and len(set(many.next_batches())) == 40  # two steps in a call
    few = contestant("vector", 30, 20)
    assert len(few.next_batches()) == 40 and set(few.next_batches()) == set(range(30))


@pytest.mark.parametrize("name, n_threads", [("loops", 1), ("threads", 2)])
def test_only_parallel_strategies_run_on_several_threads(name, n_threads):
    assert contestant(name, 20, 10, 2).n_threads == n_threads


def test_a_wrong_step_is_found(monkeypatch):
    one = contestant("vector", 40, 10)
    monkeypatch.setattr(one.replica.optimizer, "rate", 2 * RATE)
    with pytest.raises(AssertionError, match="parameters after a step of vector"):
        one.check()


def own_process(names, *plan):
    """Stands for the measurement: the number of the process in place of seconds."""
    return {"loops": Timing("loops", (float(os.getpid()),) * 2)}, {"loops": {"n_threads": 1}}


def test_processes_are_fresh_and_their_samples_kept_together(monkeypatch):
    monkeypatch.setattr(bench, "in_this_process", own_process)
    timings, facts = bench.fresh_epochs(2, ["loops"], None, 16, 1, None, 2)
    one, again, two, also = timings["loops"].samples
    assert one == again != two == also and os.getpid() not in (one, two)
    assert timings["loops"].processes == 2 and facts == {"loops": {"n_threads": 1}}


def test_a_failure_in_a_process_is_raised_here():
    with pytest.raises(ValueError, match="batch"):
        bench.fresh_epochs(2, ["vector"], load("digits", 64, 10), 0, 1, None, 2)


def test_as_many_networks_as_threads_are_trained_on_their_own(monkeypatch):
    made = []

    class Noted(bench.Replica):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(self)

    one = Contestant(KERNELS["vector"], load("digits", 64, 10), 16)
    monkeypatch.setattr(bench, "Replica", Noted)
    several = bench.OnTheirOwn(one, 3)
    with several.threads:
        several(2)
    assert [bool(replica.grads.flat.any()) for replica in made] == [True, True, False]
    assert len({id(replica.params.flat) for replica in [one.replica, *made]}) == 4


TINY = Network(
    (Conv(2, 5), ReLU(), AveragePool(2), Conv(2, 3), ReLU(), MaxPool(5), Dense(10), Sigmoid())
)


def test_operations_have_the_names_and_sizes_of_their_layers():
    named = bench.operations(TINY)
    assert {name for name in named if "backward" in name} == {
        "conv1_backward_weights", "conv1_backward_bias", "conv2_backward_input",
        "conv2_backward_weights", "conv2_backward_bias", "pool_backward_input",
        "max_pool_backward", "dense_backward_input", "dense_backward_weights",
        "dense_backward_bias", "relu_backward",
    }  # fmt: skip
    assert {"sigmoid", "relu", "cross_entropy", "max_pool_forward"} <= named.keys()
    assert bench.operations(TINY, needed=False).keys() - named.keys() == {
        "conv1_backward_input", "pool_backward_weights", "pool_backward_bias", "sigmoid_backward"
    }  # fmt: skip
    assert bench.shapes("conv2_forward", 3, TINY) == {
        "x": (3, 2, 12, 12), "w": (2, 2, 3, 3), "b": (2,), "z": (3, 2, 10, 10)
    }  # fmt: skip
    assert bench.shapes("dense_backward_weights", 7) == {
        "x": (7, 216), "dz": (7, 10), "dw": (10, 216)
    }  # fmt: skip
    assert bench.shapes("relu", 3, TINY)["y"] == (3, 2, 24, 24)
    assert bench.shapes("max_pool_forward", 3, TINY)["z"] == (3, 2, 2, 2)
    assert bench.shapes("cross_entropy", 3, TINY)["y"] == (3, 10)
    assert bench.layer_arguments("pool_forward", 3, network=TINY)[1] == (2,)


def test_a_wrong_operation_is_not_timed(monkeypatch):
    def without_bias(x, w, b, z, stride=4):
        return KERNELS["reference"].kernel("pool_forward")(x, w, np.zeros_like(b), z, stride)

    monkeypatch.setattr(KERNELS["loops"].module, "pool_forward", without_bias)
    monkeypatch.delitem(KERNELS["loops"].__dict__, "pool_forward", raising=False)
    with pytest.raises(AssertionError, match="pool_forward of loops"):
        bench.layers(["loops"], 2, 1)
    del KERNELS["loops"].__dict__["pool_forward"]  # which checks the arguments of the wrong one


REPORT = {
    "results": [{"kernels": "loops"}],
    "machine": {"cpu": "Intel Xeon @ 2.20GHz", "simd": "AVX-512, 16"},
}


@pytest.mark.parametrize(
    ("gpu", "row", "name"),
    [
        (None, {"batch": 64}, "bench-intel-xeon-2-20ghz-avx-512.json"),
        ("Tesla T4", {}, "bench-intel-xeon-2-20ghz-avx-512-tesla-t4.json"),
        (
            None,
            {"network": "lenet5", "batch": 32},
            "bench-intel-xeon-2-20ghz-avx-512-lenet5-batch-32.json",
        ),
    ],
)
def test_a_report_is_kept_under_the_name_of_its_machine(tmp_path, monkeypatch, gpu, row, name):
    report = REPORT | {"results": [row]}
    monkeypatch.setattr(bench.cuda, "gpu", lambda: (gpu is not None, gpu))
    monkeypatch.setattr(bench.cuda, "where", lambda: gpu)
    path = bench.keep(report, tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / name
    assert json.loads(path.read_text()) == report and path.read_text().endswith("}\n")
    assert [file.name for file in path.parent.iterdir()] == [name]


@pytest.fixture(scope="module")
def measured():
    return bench.run(["vector", "loops"], load("digits", 64, 10), batch=16, repeats=3)


def test_every_contestant_has_a_row(measured):
    assert [row["kernels"] for row in measured["results"]] == ["vector", "loops"]
    assert measured["machine"] == machine.describe()
    for row in measured["results"]:
        low, high = row["seconds_interval"]
        assert low <= row["seconds_per_epoch"] <= high and len(row["samples"]) == 3
        assert row["images_per_second"] == pytest.approx(EPOCH / row["seconds_per_epoch"])
        assert row["gflops"] == pytest.approx(bench.FLOPS / row["seconds_per_epoch"] / 1e9)
        assert 0 < row["peak_fraction"] < 1.5
        assert set(row["layers"]) == set(bench.operations(NETWORKS["report"]))
        assert (row["batch"], row["n_threads"], row["n_images"]) == (16, 1, 60_000)
        assert row["network"] == "report"
        assert set(row["of_peak"]) == {"conv", "pool", "dense", *Network().multiply_adds}


def test_speedups_are_over_loops_or_else_the_first(measured, monkeypatch):
    vector, loops = measured["results"]
    assert measured["ratio_to"] == loops["ratio_to"] == "loops" and loops["ratio"] == 1
    assert vector["ratio_interval"][0] <= vector["ratio"] <= vector["ratio_interval"][1]

    def epochs(processes, names, *_):
        facts = {name: {"n_threads": 1, "machine": "here"} for name in names}
        return {name: Timing(name, (2.0,)) for name in [*names, bench.PEAK]}, facts

    monkeypatch.setattr(bench, "fresh_epochs", epochs)
    monkeypatch.setattr(bench, "layers", lambda *_: {})
    result = bench.run(["vector", "threads"], load("digits", 64, 10))
    assert result["ratio_to"] == "vector" and result["results"][0]["layers"] == {}


def test_any_network_is_measured_against_the_faster_layout_of_the_peer(monkeypatch):
    here = {"n_threads": 1, "machine": machine.describe()["cpu"]}
    facts = dict.fromkeys(["loops", "torch", "torch, channels-last"], here)
    facts |= {"torch, GPU": {"n_threads": 1, "machine": "GPU: T4"}}
    seconds = dict(zip([*facts, bench.PEAK], [6.0, 3.0, 2.0, 1.0, 0.5], strict=True))

    def epochs(processes, *plan):
        assert plan[-1] is TINY
        return {name: Timing(name, (s,)) for name, s in seconds.items()}, facts

    monkeypatch.setitem(NETWORKS, "tiny", TINY)
    monkeypatch.setattr(bench, "fresh_epochs", epochs)
    data = load("digits", 8, 10)
    how = {"network": "tiny", "batch": 4, "repeats": 1}
    report = bench.run(["loops"], data, against="torch", **how)
    first, *others = report["results"]
    assert report["ratio_to"] == "torch, channels-last" and first["ratio"] == 1 / 3
    work = 2 * 60_000 * sum(TINY.multiply_adds.values())
    assert first["gflops"] == pytest.approx(work / 6e9) and first["peak_fraction"] == 0.5 / 6
    assert set(first["layers"]) == set(bench.operations(TINY))
    assert {"conv1", "conv2", "pool", "dense"} == first["of_peak"].keys() - TINY.multiply_adds
    assert not any(row["layers"] or row["of_peak"] for row in others)
    page = bench.page(report)
    assert page.startswith("Network tiny, batches of 4\n\nprocessor ")
    assert "tiny: an epoch of 60,000 images at batch 4, " in page
    assert page.count("conv2_backward_input ") == 2  # its seconds, its fraction of the peak
    with pytest.raises(ValueError, match="network: expected one of report, "):
        bench.run(["loops"], data, network="vgg")


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
    second, kept, monkeypatch, capsys
):
    bounds = [0.9, second]

    def epochs(processes, names, *_):
        bound = bounds.pop(0)
        times = {"vector": bound, "peak": 0.1, bench.ALONE: bound, bench.TOGETHER: 1}
        facts = {"vector": {"n_threads": 1, "machine": "here"}}
        return {name: Timing(name, (time,)) for name, time in times.items()}, facts

    monkeypatch.setattr(bench, "fresh_epochs", epochs)
    monkeypatch.setattr(bench, "layers", lambda *_: {})
    result = bench.run(["vector"], load("digits", 64, 10))
    assert result["bound"] == result["results"][0]["seconds_per_epoch"] == kept and not bounds
    said = capsys.readouterr().err
    assert said.startswith("measuring whole steps in this process, then layers\n")
    assert "not quiet: networks on their own, one a core, have 0.90" in said


def test_the_device_trains_in_four_ways_that_are_checked():
    result = measure.contestants(["device"], load("digits", 20, 10), 8, 1, None)
    rungs = ["device", "device, fused", "device, block", "device, graph"]
    assert list(result) == rungs
    for one in result.values():
        one.check()
        for _ in range(3):  # 20 images are two batches and a half: then the set begins again
            one.steps()
    one._call = lambda: None
    with pytest.raises(AssertionError, match="parameters on the device"):
        one.check()
    one._step._labels[...] += 1  # what the device has is not what is expected
    with pytest.raises(AssertionError, match="gradients on the device"):
        one.check()


def contestants(*names, n_images=50, against=None):
    return bench.contestants(names, load("digits", n_images, 10), 20, 1, against)


def test_a_step_is_one_step_however_many_a_call_takes(monkeypatch):
    monkeypatch.setattr(method, "IN_A_ROW", 45)
    result = contestants("loops", "vector")
    taken = {name: one.steps for name, one in result.items()}
    calls = {}

    def compare(given, **how):
        calls.update(given)
        return {name: timing.Timing(name, (6.0,)) for name in given}

    monkeypatch.setattr(timing, "compare", compare)
    timed = bench.step_times(result, others={"other": print})
    assert calls == taken | {"other": print}
    assert {name: t.samples for name, t in timed.items()} == {
        "loops": (6.0,),
        "vector": (3.0,),  # two in a call
        "other": (6.0,),
    }
    epoch = {name: t.median for name, t in bench.epochs(result, 20, 1).items()}
    assert epoch == {"loops": 6 * 3000, "vector": 3 * 3000}


def test_a_wrong_contestant_is_not_timed(monkeypatch):
    result = contestants("vector", "loops")
    timed = []
    monkeypatch.setattr(result["vector"], "steps", lambda: timed.append("vector"))
    monkeypatch.setattr(
        result["loops"].strategy.module, "conv_backward_bias", lambda dz, db: db.fill(0)
    )
    with pytest.raises(AssertionError, match="gradients of loops"):
        bench.epochs(result, 20, 1)
    assert not timed
