import functools
import json
import subprocess
import sys

import pytest

from cnnlab import bench, training
from cnnlab.__main__ import main
from cnnlab.bench import measure
from cnnlab.data import load

ROW = {
    "kernels", "n_threads", "n_ranks", "data", "n_images", "batch", "epochs", "seconds_per_epoch",
    "images_per_second", "train_loss", "test_accuracy", "machine",
}  # fmt: skip


def last_json(capsys):
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_machine_ends_with_one_line_of_json(capsys):
    assert main(["machine", "--json"]) == 0
    facts = last_json(capsys)
    assert facts["float32_peak"] > 1e9 and facts["bandwidth"] > 1e8 and facts["usable_cores"] >= 1


def test_machine_says_it_in_words(capsys):
    assert main(["machine"]) == 0
    out = capsys.readouterr().out
    assert "processor" in out and "GFLOP/s" in out


def test_train_learns_and_ends_with_one_line_of_json(capsys):
    options = ["--kernels", "loops", "--data", "digits", "--epochs", "2", "--images", "300"]
    assert main(["train", *options, "--batch", "8", "--rate", "0.3", "--seed", "3", "--json"]) == 0
    row = last_json(capsys)
    assert row.keys() >= ROW
    assert (row["kernels"], row["data"], row["n_images"]) == ("loops", "digits", 300)
    assert (row["batch"], row["epochs"], row["n_threads"], row["n_ranks"]) == (8, 2, 1, 1)
    assert row["history"][1]["loss"] < row["history"][0]["loss"]
    assert row["images_per_second"] == pytest.approx(300 / row["seconds_per_epoch"])


def test_train_tells_each_epoch_in_words(capsys):
    assert main(["train", "--data", "digits", "--images", "64"]) == 0
    assert "epoch 1: loss" in capsys.readouterr().out


def test_bench_has_a_row_for_each_contestant_with_ratio_and_interval(capsys, tmp_path):
    options = ["--kernels", "loops,vector", "--data", "digits", "--repeats", "3", "--json"]
    assert main(["bench", *options, "--batch", "16", "--record", str(tmp_path / "new")]) == 0
    report = last_json(capsys)
    assert [row["kernels"] for row in report["results"]] == ["loops", "vector"]
    for row in report["results"]:
        assert row.keys() >= ROW | {"ratio", "ratio_to", "ratio_interval", "layers"}
        assert row["batch"] == 16 and row["n_images"] == bench.EPOCH
        low, high = row["ratio_interval"]
        assert low <= row["ratio"] <= high
        assert set(row["layers"]) == set(bench.layer_shapes(1))
        assert row["images_per_second"] == pytest.approx(60_000 / row["seconds_per_epoch"])
    assert report["results"][0]["ratio"] == 1 and report["ratio_to"] == "loops"
    kept = list((tmp_path / "new").glob("bench-*.json"))
    assert json.loads(kept[0].read_text()) == report
    assert (tmp_path / "new" / "speedup.png").stat().st_size > 5_000


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ("train --kernels nope", "one of reference, loops, vector"),
        ("train --data cifar", "one of mnist, fashion, digits, auto"),
        ("train --epochs 0", "whole number of at least 1, got '0'"),
        ("train --batch 1.5", "whole number of at least 1, got '1.5'"),
        ("train --rate -1", "positive number, got '-1'"),
        ("train --rate nan", "positive number, got 'nan'"),
        ("train --kernels loops --threads 4", "loops runs on one thread"),
        ("train --data digits --batch 2000", "at most the 1437 images, got 2000"),
        ("bench --data digits --kernels loops,nope", "got 'nope'"),
        ("bench --data digits --images 100 --batch 101", "at most the 100 images, got 101"),
        ("bench --against jax", "torch"),
        ("fly", "machine"),
        ("", "machine | train | bench"),
    ],
)
def test_a_mistake_is_one_line_and_exit_status_2(arguments, expected, capsys):
    try:
        status = main(arguments.split())
    except SystemExit as stop:
        status = stop.code
    message = capsys.readouterr().err
    assert status == 2 and expected in message and message.count("\n") == 1


def test_against_torch_says_how_to_get_it_where_it_is_missing(capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["bench", "--data", "digits", "--against", "torch"]) == 2
    assert "pip install torch" in capsys.readouterr().err


def test_the_package_runs_as_a_program():
    command = [sys.executable, "-m", "cnnlab", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "bench" in done.stdout


def test_a_wrong_contestant_is_not_timed(monkeypatch):
    found = bench.contestants(["loops"], load("digits", 64), 16, 1, None)
    found["loops"].check()
    monkeypatch.setattr(
        found["loops"].strategy.module,
        "conv_backward_bias",
        lambda dz, db: db.fill(0),
    )
    with pytest.raises(AssertionError, match="gradients of loops"):
        bench.epochs(found, 16, 1)


def test_the_device_trains_in_three_ways_that_are_checked(monkeypatch):
    found = bench.contestants(["device"], load("digits", 20), 8, 1, None)
    assert list(found) == ["device", "device, fused", "device, graph"]
    for one in found.values():
        one.check()
        for _ in range(3):  # 20 images are two batches: then the set begins anew
            one.steps()
    one._step._labels[...] += 1  # what the device has is not what is expected
    with pytest.raises(AssertionError, match="gradients on the device"):
        one.check()


def test_recorded_rows_are_those_of_all_files(tmp_path):
    assert bench.recorded(tmp_path / "nowhere") == []
    for number in (1, 2):
        content = {"results": [{"kernels": "loops", "number": number}]}
        (tmp_path / f"bench-{number}.json").write_text(json.dumps(content))
    assert [row["number"] for row in bench.recorded(tmp_path)] == [1, 2]


def test_batches_go_round_through_all_images(monkeypatch):
    monkeypatch.setattr(training, "IN_A_ROW", 45)
    one = bench.contestants(["loops"], load("digits", 50), 20, 1, None)["loops"]
    first, second, third = (one.next_batches() for _ in range(3))
    assert len(set(first) | set(second)) == 40 and (first == third).all()
    many = bench.contestants(["vector"], load("digits", 50), 20, 1, None)["vector"]
    assert many.n_steps == 2 and len(set(many.next_batches())) == 40  # two steps in a call
    few = bench.contestants(["vector"], load("digits", 30), 20, 1, None)["vector"]
    assert len(few.next_batches()) == 40 and set(few.next_batches()) == set(range(30))


def test_a_step_is_one_step_however_many_a_call_takes(monkeypatch):
    monkeypatch.setattr(training, "IN_A_ROW", 45)
    found = bench.contestants(["loops", "vector"], load("digits", 50), 20, 1, None)
    taken = {name: one.steps for name, one in found.items()}
    calls = {}

    def compare(given, **how):
        calls.update(given)
        return {name: measure.Timing(name, (6.0,)) for name in given}

    monkeypatch.setattr(bench.measure, "compare", compare)
    timed = bench.step_times(found, others={"other": print})
    assert calls == taken | {"other": print}
    assert {name: t.samples for name, t in timed.items()} == {
        "loops": (6.0,),
        "vector": (3.0,),  # two in a call
        "other": (6.0,),
    }
    epoch = {name: t.median for name, t in bench.epochs(found, 20, 1).items()}
    assert epoch == {"loops": 6 * 3000, "vector": 3 * 3000}


def test_a_wrong_step_is_not_timed(monkeypatch):
    found = bench.contestants(["vector"], load("digits", 64), 16, 1, None)
    module = found["vector"].strategy.module
    found["vector"].check()
    right = module.sgd_steps

    @functools.wraps(right)
    def twice_as_far(params, grads, images, labels, order, batch, rate):
        return right(params, grads, images, labels, order, batch, 2 * rate)

    monkeypatch.setattr(module, "sgd_steps", twice_as_far)
    with pytest.raises(AssertionError, match="parameters after a step of vector"):
        bench.epochs(found, 16, 1)


def test_torch_is_the_same_network():
    pytest.importorskip("torch")
    bench.contestants([], load("digits", 64), 16, 1, "torch")["torch"].check()


def test_a_reader_that_has_seen_enough_gets_no_traceback():
    command = [sys.executable, "-m", "cnnlab", "train", "--data", "digits", "--images", "50"]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    job.stdout.close()
    assert "Traceback" not in job.stderr.read() and job.wait() == 141
