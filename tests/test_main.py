import json
import os
import subprocess
import sys

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from cnnlab.__main__ import main
from cnnlab.data import load
from cnnlab.kernels import KERNELS
from cnnlab.network import NETWORKS, Conv, Dense, MaxPool, Network, ReLU, Sigmoid
from cnnlab.ranks import job
from cnnlab.runtime import failures
from cnnlab.training import checkpoint, train

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


def test_train_learns_and_ends_with_one_line_of_json(capsys):
    options = ["--kernels", "loops", "--data", "digits", "--epochs", "2", "--images", "300"]
    assert main(["train", *options, "--batch", "8", "--rate", "0.3", "--seed", "3", "--json"]) == 0
    row = last_json(capsys)
    assert row.keys() >= ROW
    assert (row["kernels"], row["data"], row["n_images"]) == ("loops", "digits", 300)
    assert (row["batch"], row["epochs"], row["n_threads"], row["n_ranks"]) == (8, 2, 1, 1)
    assert row["history"][1]["loss"] < row["history"][0]["loss"]
    assert row["images_per_second"] == pytest.approx(300 / row["seconds_per_epoch"])


def test_train_tells_each_epoch_in_words_and_takes_few_images_often(capsys):
    assert main(["train", "--data", "digits", "--images", "64"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:10]] == [f"epoch {k}" for k in range(1, 11)]
    assert "loss" in lines[0] and "test accuracy" in lines[0]


def test_a_resumed_training_tells_its_new_epochs(capsys, tmp_path):
    file = str(tmp_path / "a.npz")
    common = ["train", "--data", "digits", "--images", "64", "--save", file, "--epochs"]
    assert main([*common, "1"]) == 0
    assert main([*common, "3", "--resume", file]) == 0
    out = capsys.readouterr().out
    assert [out.count(f"epoch {k}:") for k in (1, 2, 3)] == [1, 1, 1]


def test_a_training_that_diverges_ends_with_status_3(capsys):
    assert main("train --data digits --images 64 --rate 1e300".split()) == 3
    message = capsys.readouterr().err
    assert "diverged at epoch" in message and message.count("\n") == 1


def test_a_checkpoint_that_cannot_be_written_is_told(capsys, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "save", full)
    options = ["--data", "digits", "--images", "64", "--save", str(tmp_path / "a.npz")]
    options += ["--epochs", "1"]
    assert main(["train", *options]) == 1
    assert "cnnlab: --save: epoch 1 is not in" in capsys.readouterr().err


def test_more_threads_than_cores_are_told(capsys, monkeypatch):
    monkeypatch.setattr("cnnlab.runtime.thread_pool.usable_cores", lambda: 1)
    monkeypatch.setattr("cnnlab.runtime.thread_pool.size", lambda: 2)
    options = ["--data", "digits", "--images", "64", "--kernels", "threads", "--epochs", "1"]
    monkeypatch.setattr("cnnlab.runtime.failures.AFTER", 3600)  # compiling is not said
    assert main(["train", *options, "--threads", "2"]) == 0
    assert capsys.readouterr().err == "cnnlab: --threads: 2 threads share 1 cores\n"


def test_python_in_the_place_of_compiled_kernels_is_refused(capsys, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert main(["train", "--data", "digits"]) == 2
    assert capsys.readouterr().err.startswith("cnnlab: NUMBA_DISABLE_JIT: expected 0")


@pytest.mark.parametrize("words", ["cnnlab machine", "cnnlab.course check 00"])
def test_no_threads_at_all_are_refused_before_numba_sees_them(words):
    command = [sys.executable, "-m", *words.split()]
    environment = os.environ | {"NUMBA_NUM_THREADS": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    said = "NUMBA_NUM_THREADS: expected a whole number of at least 1, got 0\n"
    assert done.returncode == 2 and done.stderr.removeprefix("cnnlab: ") == said


def test_virtual_ranks_are_refused_under_mpiexec(capsys, monkeypatch):
    monkeypatch.setattr(job, "started", lambda: 2)
    assert main(["train", "--data", "digits", "--virtual", "4", "--ranks", "data"]) == 2
    assert "--virtual: expected one process, got 2 under mpiexec" in capsys.readouterr().err


@pytest.mark.slow
def test_a_record_that_cannot_be_written_is_told_and_nothing_is_lost(capsys, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    options = ["--kernels", "loops", "--data", "digits", "--images", "64", "--repeats", "1"]
    options += ["--batch", "4", "--processes", "1", "--json", "--record"]
    (tmp_path / "file").touch()
    assert main(["bench", *options, str(tmp_path / "file")]) == 1
    assert capsys.readouterr().out == ""  # before it was measured
    monkeypatch.setattr("cnnlab.measure.bench.keep", full)
    assert main(["bench", *options, str(tmp_path / "new")]) == 1
    said = capsys.readouterr()
    assert said.err.endswith("cnnlab: --record: [Errno 28] No space left on device\n")
    assert json.loads(said.out.splitlines()[-1])["results"]


@pytest.mark.slow
def test_bench_measures_each_batch_and_records_it_with_the_network(capsys, tmp_path, monkeypatch):
    tiny = Network((Conv(2, 5), ReLU(), MaxPool(8), Dense(10), Sigmoid()))
    monkeypatch.setitem(NETWORKS, "tiny", tiny)
    options = "--network tiny --batch 2,4 --kernels loops,vector --data digits --images 8"
    options += f" --repeats 1 --processes 1 --json --record {tmp_path}"
    assert main(["bench", *options.split()]) == 0
    reports = last_json(capsys)
    for batch, report in zip((2, 4), reports, strict=True):
        assert [row["kernels"] for row in report["results"]] == ["loops", "vector"]
        for row in report["results"]:
            assert row.keys() >= ROW | {"ratio", "ratio_to", "ratio_interval", "layers"}
            assert (row["batch"], row["network"]) == (batch, "tiny")
        [page] = tmp_path.glob(f"bench-*-tiny-batch-{batch}.txt")
        assert "whole step" in page.read_text(encoding="utf-8")
        assert json.loads(page.with_suffix(".json").read_text()) == report
        assert page.with_suffix(".png").stat().st_size > 5_000


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ("train --kernels nope", f"one of {', '.join(KERNELS)}"),
        ("train --data cifar", "one of mnist, fashion, digits, auto"),
        ("train --batch 1.5", "--batch: expected a whole number of at least 1, got '1.5'"),
        ("train --rate nan", "--rate: expected a positive number, got nan"),
        ("train --kernels loops --threads 4", "expected 1, loops runs on one thread, got 4"),
        ("train --data digits --batch 2000", "at most the 1437 images, got 2000"),
        ("bench --data digits --kernels loops,nope", "got 'nope'"),
        ("bench --data digits --images 100 --batch 101", "at most the 100 images, got 101"),
        ("bench --against jax", "torch"),
        ("bench --network vgg", "--network: invalid choice: 'vgg'"),
        ("bench --batch 1,x", "--batch: expected a whole number of at least 1, got 'x'"),
        ("bench --data digits --images 9 --batch 2,10", "at most the 9 images, got 10"),
        ("bench --data digits --network lenet5 --sweep", "--network report with it, got lenet5"),
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


@pytest.mark.parametrize("command", ["machine", "train", "bench"])
def test_help_explains_every_option(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert f"python -m cnnlab {command} [options]" in text
    options = text.partition("options:")[2]
    for entry in options.split("\n  -")[1:]:
        assert len(entry.split(maxsplit=2)) == 3, f"-{entry} is not explained"
    if command != "machine":
        assert all(name in " ".join(options.split()) for name in ("images per step", "--threads N"))
    if command == "train":
        assert all(name in options for name in KERNELS)
        groups = "the training:", "data and threads:", "ranks, and how", "checkpoints:"
        assert all(f"\n{group}" in text for group in groups)


def test_a_reader_that_has_seen_enough_gets_no_traceback():
    command = [sys.executable, "-m", "cnnlab", "train", "--data", "digits", "--images", "50"]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    job.stdout.close()
    assert "Traceback" not in job.stderr.read() and job.wait() == 141


@pytest.mark.parametrize("module", ["llvmlite", "threadpoolctl", "numba"])
def test_an_interrupt_while_a_module_loads_is_one_line(module, tmp_path):
    interrupts = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)\n"
    (tmp_path / f"{module}.py").write_text(interrupts)
    command = [sys.executable, "-m", "cnnlab", "train", "--data", "digits"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert (done.returncode, done.stderr) == (130, "cnnlab: stopped\n")


def test_numpys_products_take_one_core(monkeypatch):
    seen = []

    def look(chosen):
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return 0

    monkeypatch.setattr("cnnlab.__main__.show_machine", look)
    with threadpool_limits(2, user_api="blas"):
        assert main(["machine"]) == 0
        assert seen and set(seen) == {1}


@pytest.mark.parametrize(
    "words",
    [
        "--virtual 4 --ranks data --link 1us,10GB/s",
        "--virtual 8 --ranks hybrid --grid 2x2x2 --schedule gpipe --micro-batches 2",
        "--virtual 3 --ranks sharded --network lenet5",
    ],
)
def test_virtual_ranks_cut_the_network(words, capsys, monkeypatch):
    telling = failures.telling
    monkeypatch.setattr(failures, "telling", lambda what, after: telling(what, 0.0))
    options = "train --data digits --images 40 --batch 16 --epochs 1 --json".split()
    network = [words[words.index("--network") :]] if "--network" in words else [""]
    reported = []
    for ranks in (*network, words):
        assert main([*options, *ranks.split()]) == 0
        out, err = capsys.readouterr()
        lines = out.splitlines()
        reported.append(json.loads(lines[-1]))
    assert "ranks take turns" in err
    said = "4 virtual ranks, links of 1 µs and 10 GB/s: seconds are of their clocks"
    assert (said in lines) == ("--link" in words)
    assert reported[1]["train_loss"] == pytest.approx(reported[0]["train_loss"], abs=1e-4)
    assert reported[1]["test_accuracy"] == reported[0]["test_accuracy"]
    assert (reported[0]["virtual"], reported[1]["virtual"]) == (False, True)
    assert reported[1]["method"] in words
    assert reported[1].get("schedule", "") in words and reported[1].get("n_micro", 2) == 2


@pytest.mark.parametrize(
    "words, text",
    [
        (["--virtual", "4", "--ranks", "hybrid", "--grid", "2x2x2"], "got 2 × 2 × 2 = 8"),
        (["--schedule", "gpipe"], "--schedule: expected --ranks pipeline or hybrid with it, got"),
        (["--virtual", "2", "--ranks", "model", "--kernels", "partitioned"], "for one core, got"),
        (["--virtual", "2"], "--virtual: expected --ranks data|model|pipeline|hybrid|sharded|"),
        (["--virtual", "2", "--ranks", "layers"], "got --ranks layers --kernels vector"),
        (["--virtual", "2", "--ranks", "data", "--kernels", "threads"], "--kernels threads"),
        (["--link", "1us,1GB/s"], "--link: expected --virtual with it, got 1us,1GB/s without"),
        (["--kernels", ""], "--kernels: expected a value, got ''"),
        (["--kernels="], "--kernels: expected a value, got ''"),
        (["--virtual", "4097", "--ranks", "data"], "--virtual: expected at most 4,096, got 4097"),
    ],
)
def test_impossible_virtual_ranks_are_one_line(capsys, words, text):
    assert main(["train", "--data", "digits", *words]) == 2
    assert text in capsys.readouterr().err


def test_a_training_that_ends_on_the_plateau_of_guessing_says_so_in_a_line(capsys):
    words = "train --data digits --images 320 --epochs 2 --network lenet5".split()
    assert main([*words, "--rate", "0.4"]) == 0
    *_, epoch, line = capsys.readouterr().out.splitlines()
    assert epoch.startswith("epoch 2: ") and "accuracy 10.00%" in epoch
    assert line == "no better than guessing: lower --rate, or train for more --epochs"
    assert main(words) == 0
    assert "guessing" not in capsys.readouterr().out


def test_train_steps_with_the_optimizer_asked_for(capsys, tmp_path):
    words = "train --data digits --images 96 --batch 32 --epochs 2 --optimizer adam --json".split()
    assert main([*words, "--save", str(tmp_path / "a.npz")]) == 0
    reported = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert reported["optimizer"] == "adam"
    expected = train(load("digits", 96), optimizer="adam", batch=32, epochs=2, progress=False)
    assert reported["train_loss"] == expected.history[-1]["loss"]
    with pytest.raises(SystemExit, match="2"):
        main(["train", "--optimizer", "newton"])
    assert "--optimizer: invalid choice: 'newton'" in capsys.readouterr().err
