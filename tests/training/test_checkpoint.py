import json
from dataclasses import replace

import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.network import INCEPTION, LENET5, Network
from cnnlab.training import Diverged, checkpoint, train
from cnnlab.training.checkpoint import Checkpoint
from tests.networks import report_network

DIGITS = load("digits", 100, 50)


@pytest.mark.parametrize("network", [Network(), LENET5, INCEPTION, report_network(filters=2)])
def test_what_was_saved_is_loaded(tmp_path, network):
    params, state, file = network.parameters(3), {"speed": np.arange(3.0)}, tmp_path / "x.npz"
    checkpoint.save(file, Checkpoint(params, state, [ROW], {"batch": 7}))
    result = checkpoint.load(file)
    assert result.params.network == network and np.array_equal(result.params.flat, params.flat)
    assert (result.history, result.plan) == ([ROW], {"batch": 7})
    assert np.array_equal(result.state["speed"], state["speed"])


def test_a_training_that_is_done_is_resumed_and_has_nothing_left_to_do(tmp_path):
    file = tmp_path / "training.npz"
    done = train(DIGITS, epochs=2, save=file)
    again = train(DIGITS, epochs=2, resume=file)
    assert np.array_equal(again.params.flat, done.params.flat) and again.history == done.history


ROW = dict.fromkeys(checkpoint.ROW, 1.0) | {"epoch": 1}
PARAMS = Network().parameters()
EMPTY = Checkpoint(PARAMS, {}, [], {})


def test_a_failed_write_leaves_the_old_file_whole_and_nothing_else(tmp_path, monkeypatch):
    file = tmp_path / "training.npz"
    checkpoint.save(file, EMPTY)
    before = file.read_bytes()

    def full(*arguments, **more):
        raise OSError("no space left on device")

    monkeypatch.setattr(checkpoint.np, "savez", full)
    with pytest.raises(OSError, match="no space"):
        checkpoint.save(file, EMPTY._replace(history=[ROW]))
    assert file.read_bytes() == before and list(tmp_path.iterdir()) == [file]


def test_a_disk_that_fills_up_ends_no_training_and_is_told(tmp_path, monkeypatch):
    file, saves = tmp_path / "training.npz", []

    def full(path, done):
        saves.append(path)
        if len(saves) > 1:
            raise OSError("no space left on device")

    monkeypatch.setattr(checkpoint, "save", full)
    run = train(DIGITS, epochs=3, save=file)
    assert [row["epoch"] for row in run.history] == [1, 2, 3] and len(saves) == 3
    assert [text.split(" is")[0] for text in run.unsaved] == ["epoch 2", "epoch 3"]
    assert "no space left" in run.unsaved[0]


def test_where_nothing_can_be_written_no_epoch_is_begun(tmp_path):
    rows = []
    with pytest.raises(ValueError, match="save: expected a file in a folder that exists, got"):
        train(DIGITS, save=tmp_path / "nowhere" / "training.npz", tell=rows.append)
    assert not rows


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kernels", ["vector", "loops"])
@pytest.mark.parametrize("rate", [1e3, 3e38])
def test_a_training_that_diverges_says_so(kernels, rate, tmp_path):
    file = tmp_path / "training.npz"
    with pytest.raises(Diverged, match=r"diverged at epoch 1: expected .*, got .*; lower the rate"):
        train(DIGITS, kernels, epochs=3, save=file, rate=rate, batch=10)
    assert not file.exists()


def test_a_training_that_diverges_keeps_the_last_good_checkpoint(tmp_path):
    file, images = tmp_path / "training.npz", DIGITS.train_images.copy()
    images[5] = np.nan
    train(DIGITS, save=file)
    before = file.read_bytes()
    with pytest.raises(Diverged, match="diverged at epoch 2"):
        train(replace(DIGITS, train_images=images), epochs=9, resume=file, save=file)
    assert file.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", "cut", "another"])
def test_another_file_is_refused_by_name(tmp_path, content):
    file = tmp_path / "other.npz"
    if content == "another":
        np.savez(file, flat=np.zeros(3), about=np.array("{}"))
    elif content == "cut":
        checkpoint.save(file, EMPTY)
        file.write_bytes(file.read_bytes()[:-200])
    else:
        file.write_bytes(content)
    with pytest.raises(ValueError, match=r"resume: expected a checkpoint .*, got .*other.npz"):
        checkpoint.load(file)


ABOUT = {"network": Network().description(), "history": [ROW], "plan": {}}
HUGE = report_network(filters=10**9).description()


@pytest.mark.parametrize(
    "changed, message",
    [
        (
            {"flat": PARAMS.flat[:1]},
            r"flat: expected 'f' of shape \(2428,\), got float32 of \(1,\)",
        ),
        ({"flat": PARAMS.flat * np.nan}, "flat: expected finite numbers, 2428 are not"),
        ({"flat": PARAMS.flat.astype(np.int32)}, "flat: expected 'f' .*, got int32"),
        ({"flat": np.array([None] * 2428)}, "Object arrays cannot be loaded"),
        ({"about": ABOUT | {"history": None}}, "TypeError"),
        ({"about": ABOUT | {"history": [{}]}}, "history: expected .* of epoch 1, got {}"),
        ({"about": ABOUT | {"history": [ROW, ROW]}}, "history: expected .* of epoch 2"),
        ({"about": ABOUT | {"history": [ROW | {"loss": None}]}}, "TypeError"),
        ({"about": ABOUT | {"history": [ROW | {"loss": np.inf}]}}, "finite numbers in epoch 1"),
        ({"about": ABOUT | {"plan": 3}}, "TypeError"),
        ({"about": ABOUT | {"network": {}}}, "KeyError"),
        ({"about": ABOUT | {"network": HUGE}}, r"flat: expected 'f' of shape \(\d{10,},\)"),
        ({"about": [1]}, "TypeError"),
        ({"optimizer speed": np.array([np.nan])}, "optimizer speed: expected finite numbers"),
    ],
)
def test_a_spoiled_checkpoint_is_refused_with_the_reason(tmp_path, changed, message):
    file, arrays = tmp_path / "x.npz", {"flat": PARAMS.flat, "about": ABOUT} | changed
    arrays["about"] = np.array(json.dumps(arrays["about"]))
    np.savez(file, **arrays)
    with pytest.raises(ValueError, match=f"resume: expected a checkpoint.*{message}") as error:
        checkpoint.load(file)
    assert str(error.value).count("\n") == 0


def test_a_header_that_claims_more_than_the_file_holds_is_not_believed(tmp_path):
    file = tmp_path / "x.npz"
    network = report_network(filters=10**4)
    n = network.zeros().flat.size
    np.savez(
        file,
        flat=PARAMS.flat,
        about=np.array(json.dumps(ABOUT | {"network": network.description()})),
    )
    old, new = b"(2428,), }", f"({n},), }}".encode()
    data = file.read_bytes()
    assert data.count(old) == 1
    file.write_bytes(data.replace(old + b" " * (len(new) - len(old)), new))
    with pytest.raises(ValueError, match=r"x\.npz: (BadZipFile|ValueError): (Bad CRC|EOF)"):
        checkpoint.load(file)


def test_a_checkpoint_of_another_training_is_refused(tmp_path):
    file = tmp_path / "training.npz"
    train(DIGITS, epochs=2, seed=3, batch=16, save=file)
    for wrong, what in (
        ({"seed": 4}, "expected seed 4, .* was trained with 3"),
        ({"seed": 3, "batch": 32}, "expected batch 32, .* was trained with 16"),
        ({"seed": 3, "network": report_network(filters=5)}, "expected network"),
        ({"seed": 3, "rate": 0.4, "optimizer": "adam"}, "expected optimizer adam, .* with sgd"),
        ({"seed": 3, "kernels": "reference"}, "expected dtype float64, .* with float32"),
    ):
        with pytest.raises(ValueError, match=f"resume: {what}"):
            train(DIGITS, epochs=4, resume=file, **wrong)
    with pytest.raises(ValueError, match=r"expected at most 1 epochs, .* has done 2"):
        train(DIGITS, epochs=1, seed=3, resume=file)
    with pytest.raises(ValueError, match="resume: expected a file, there is no"):
        train(DIGITS, resume=tmp_path / "none.npz")
