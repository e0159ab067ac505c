
import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.network import Network, report_network
from cnnlab.training import checkpoint, train

DIGITS = load("digits", 100, 50)


def test_a_resumed_training_ends_with_the_bits_of_an_unbroken_one(tmp_path):
    file = tmp_path / "training.npz"
    train(DIGITS, epochs=2, seed=3, save=file)
    resumed = train(DIGITS, epochs=4, seed=3, resume=file, save=file)
    unbroken = train(DIGITS, epochs=4, seed=3)
    assert np.array_equal(resumed.params.flat, unbroken.params.flat)
    losses = [[row["loss"] for row in run.history] for run in (resumed, unbroken)]
    assert losses[0] == losses[1] and [row["epoch"] for row in resumed.history] == [1, 2, 3, 4]
    assert np.array_equal(checkpoint.load(file)[0].flat, unbroken.params.flat)


def test_a_failed_write_leaves_the_old_file_whole_and_nothing_else(tmp_path, monkeypatch):
    file, params = tmp_path / "training.npz", Network().parameters()
    checkpoint.save(file, params, {}, [], {})
    before = file.read_bytes()

    def full(*arguments, **more):
        raise OSError("no space left on device")

    monkeypatch.setattr(checkpoint.np, "savez", full)
    with pytest.raises(OSError, match="no space"):
        checkpoint.save(file, params, {}, [{"epoch": 1}], {})
    assert file.read_bytes() == before and list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", None])
def test_another_file_is_refused_by_name(tmp_path, content):
    file = tmp_path / "other.npz"
    if content is None:
        np.savez(file, flat=np.zeros(3), about=np.array("{}"))
    else:
        file.write_bytes(content)
    with pytest.raises(ValueError, match=r"resume: .*other.npz should be a checkpoint"):
        checkpoint.load(file)


def test_a_cut_checkpoint_is_refused(tmp_path):
    file = tmp_path / "cut.npz"
    checkpoint.save(file, Network().parameters(), {}, [], {})
    file.write_bytes(file.read_bytes()[:-200])
    with pytest.raises(ValueError, match=r"cut.npz should be a checkpoint"):
        checkpoint.load(file)


def test_a_checkpoint_of_another_training_is_refused(tmp_path):
    file = tmp_path / "training.npz"
    train(DIGITS, epochs=2, seed=3, batch=16, save=file)
    for wrong, what in (
        ({"seed": 4}, "seed 3, not 4"),
        ({"seed": 3, "batch": 32}, "batch 16, not 32"),
        ({"seed": 3, "network": report_network(filters=5)}, "network"),
    ):
        with pytest.raises(ValueError, match=f"resume: .* was trained with {what}"):
            train(DIGITS, epochs=4, resume=file, **wrong)
    with pytest.raises(ValueError, match="has done 2 epochs, more than 1"):
        train(DIGITS, epochs=1, seed=3, resume=file)
    with pytest.raises(ValueError, match="resume: there is no file"):
        train(DIGITS, resume=tmp_path / "none.npz")
