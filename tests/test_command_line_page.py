"""The code in the page on the command line runs as it is pasted, and prints what the page says."""

import re
import shlex

import pytest

from cnnlab.__main__ import main, parser
from tests.source import NOTEBOOKS

PAGE = (NOTEBOOKS / "command_line.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:mpiexec -n (\d+) |srun .*?)?python -m cnnlab (\w.*)$", re.MULTILINE)
COMMANDS = [result for block in BLOCKS for result in COMMAND.findall(block.replace("\\\n", ""))]
# `layers` and lost workers want real ranks; tests/ranks/test_slurm.py runs the script for Slurm.
REAL = r"ranks layers|.*--lost|.*\$"
TRAININGS = [result for result in COMMANDS if re.match(f"train --(?!{REAL})", result[1])]
SMALL = "--data", "digits", "--images", "256", "--epochs", "1"


def words(command):
    command, _, _ = command.partition(" > ")
    return shlex.split(command.replace("$SLURM_CPUS_PER_TASK", "2"), comments=True)


def test_the_cells_run_as_they_are_pasted_and_print_what_the_page_says(ipython, capsys):
    cells = [block for block in BLOCKS if re.match("%|with ", block)]
    assert len(cells) == 3 and cells[1].startswith("%%cuda mine")
    for cell in cells:
        assert ipython.run_cell(cell).success, cell
    said, promised = capsys.readouterr().out, PAGE.partition(cells[-1])[2]
    fault = re.search(r"`(out of bounds, [^`]+)`", promised)[1].replace("\n", " ")
    assert fault in said.splitlines()
    assert "sectors each" in said  # how well the accesses coalesce


@pytest.mark.parametrize("command", [command for _, command in COMMANDS])
def test_the_commands_are_understood(command):
    parser().parse_args(words(command))


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "command"), TRAININGS)
def test_the_trainings_train(ranks, command, tmp_path, monkeypatch):
    """On few images; with virtual ranks where the page has real ones."""
    monkeypatch.chdir(tmp_path)
    virtual = ("--virtual", ranks, "--link", "1us,1GB/s") if ranks else ()
    assert main([*words(command), *virtual, *SMALL]) == 0
