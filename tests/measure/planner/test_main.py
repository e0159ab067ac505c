"""The planner's command line: a table, the shortest step first; or one line that says why not."""

import pytest
from tests.bench.planner.examples import VIRTUAL, problem

from cnnlab.measure.planner import __main__
from cnnlab.measure.planner.plan import plans

FIRST = ["--network", "lenet5", "--batch", "32", "--virtual"]


def names(told):
    head, units, *lines = told.splitlines()
    assert head.split() == ["plan", "sent", "held"] and units.split() == ["ms", "kB", "×1000"]
    return [" ".join(line.split()[:-3]).strip(" *") for line in lines]


def test_the_shortest_is_first_and_memory_is_a_bound(capsys):
    assert __main__.main(FIRST) == 0
    found = plans(problem(), VIRTUAL)
    order = sorted(found, key=lambda name: found[name].seconds)
    told = capsys.readouterr().out
    assert names(told) == order and names(told)[-1] == "alone"
    assert "local every 8 *" in told and "sharded *" not in told
    assert __main__.main([*FIRST, "--memory", "150000"]) == 0
    assert names(capsys.readouterr().out) == [n for n in order if found[n].held <= 150_000]
    assert __main__.main([*FIRST, "--memory", "10"]) == 0
    assert capsys.readouterr().out == f"none of {len(found)} holds at most 10\n"


@pytest.mark.parametrize(
    "arguments, word",
    [
        (["--ranks", "1"], "--ranks: expected a whole number of at least 2, got 1"),
        (["--link", "fast"], "link: expected a text such as 10us,1GB/s, got 'fast'"),
    ],
)
def test_what_cannot_be_is_told_in_a_line(arguments, word, capsys):
    with pytest.raises(SystemExit) as stopped:
        __main__.main([*FIRST, *arguments])
    assert stopped.value.code == 2
    assert capsys.readouterr().err == f"{word}\n"


def test_kernels_of_this_machine_are_measured(monkeypatch, capsys):
    monkeypatch.setattr(__main__, "compressors", lambda ways: {"fp16"})  # the others are compiled
    assert __main__.main(["--ranks", "2"]) == 0
    of = plans(problem("report", 2, 64), VIRTUAL)
    assert set(names(capsys.readouterr().out)) == of.keys()
