"""A strategy, a method, an optimiser, a compressor: each is a file and an entry, and no more.

A toy of each is trained, timed, drawn, planned, and has a row in the table of the pages.
"""

import importlib
import json
from pathlib import Path

import pytest

from cnnlab.__main__ import main
from cnnlab.course import tables
from cnnlab.distributed import METHODS
from cnnlab.distributed.compressors import COMPRESSORS
from cnnlab.kernels import KERNELS, Strategy
from cnnlab.runtime.arguments import Entry
from cnnlab.training.optimizers import OPTIMIZERS

FILES = {
    "strategy": "from cnnlab.kernels.loops import *\n",
    "method": """
from cnnlab.distributed.data_parallel import DataParallel


class Late(DataParallel):
    '''As data parallelism, every step taken after a barrier.'''

    def step(self, replica, chosen):
        self.comm.Barrier()
        return super().step(replica, chosen)
""",
    "optimizer": """
import numpy as np

from cnnlab.training.optimizers import Directed


class SignSgd(Directed):
    usual = 0.001

    def direct(self, g):
        np.sign(g, out=g)
""",
    "compressor": """
from cnnlab.distributed.compressors.base import Compressor


class Copied(Compressor):
    pass
""",
}
TRAIN = "train --data digits --images 96 --epochs 1 --batch 32 --json"


@pytest.fixture(autouse=True)
def toys(tmp_path, monkeypatch):
    """A package with one file for each toy, and one entry for each in the four lists."""
    package = tmp_path / "toys"
    package.mkdir()
    for name, source in FILES.items():
        (package / f"{name}.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    strategy = Strategy("toy", "plain loops", module=importlib.import_module("toys.strategy"))
    monkeypatch.setitem(KERNELS, "toy", strategy)
    for entries, where in (
        (METHODS, "toys.method:Late"),
        (OPTIMIZERS, "toys.optimizer:SignSgd"),
        (COMPRESSORS, "toys.compressor:Copied"),
    ):
        monkeypatch.setitem(entries, "toy", Entry("toy", "a toy", where))


def run(capsys, command: str) -> str:
    """What a command prints; it must succeed."""
    assert main(command.split()) in (0, None)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "options",
    [
        "--kernels toy",
        "--optimizer toy",
        "--virtual 2 --ranks toy",
        "--virtual 2 --ranks data --compress toy",
        "--virtual 3 --ranks toy --kernels toy --optimizer toy --compress toy",
    ],
)
def test_toys_train_by_their_names(capsys, options):
    trained = json.loads(run(capsys, f"{TRAIN} {options}").splitlines()[-1])
    assert 0 < trained["train_loss"] < 10


@pytest.mark.slow
def test_a_strategy_is_timed_and_drawn(capsys, tmp_path):
    folder = tmp_path / "records"
    command = "bench --kernels loops,toy --data digits --images 96 --batch 32 --repeats 2"
    assert "toy" in run(capsys, f"{command} --processes 1 --record {folder}")
    assert len([*folder.glob("*.json")]) == len([*folder.glob("*.png")]) == 1


def test_a_method_is_planned(capsys):
    lines = run(capsys, "plan -n 2 --batch 8 --network lenet5 --model").splitlines()[2:]
    rows = {line.split()[0].rstrip(":"): line.split() for line in lines}
    assert rows.keys() == METHODS.keys()
    messages = {name: float(rows[name][-2]) for name in ("data", "toy")}
    assert messages == {"data": 4, "toy": 6}  # a barrier has two


def test_each_has_a_row_on_the_page_of_methods():
    page = (Path(__file__).parents[1] / "notebooks" / "methods.md").read_text(encoding="utf-8")
    for heading in ("--ranks", "--compress", "--optimizer"):
        section = next(s for s in tables.methods(page).split("\n## ") if f"`{heading}`" in s[:60])
        assert "| `toy` | a toy" in section
