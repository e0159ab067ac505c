import json
import subprocess
import sys
import time

import numpy as np
import pytest

from cnnlab.training.search import Here, Journal, Result, run
from tests.source import ROOT
from tests.training.search.examples import hill, searches

NAMES = list(searches())


def unbroken(name):
    return run(searches()[name], Here(hill))


def stopped(name, path, n):
    """A journal whose process ended with trial number n handed out."""
    journal = Journal(searches()[name], path)
    while (trial := journal.ask()).number < n:
        journal.tell(trial, hill(trial, journal.state(trial)))
    journal.close()


@pytest.mark.parametrize("name", NAMES)
def test_a_stopped_search_goes_on_where_it_was(name, tmp_path):
    path = tmp_path / "search.jsonl"
    stopped(name, path, 10)
    evaluated = []

    def noting(trial, state):
        evaluated.append(trial.number)
        return hill(trial, state)

    again = Journal(searches()[name], path)
    expected = unbroken(name)
    assert run(again, Here(noting)) == expected
    assert evaluated == list(range(10, len(expected)))
    again.close()
    assert Journal(searches()[name], path).done == expected


@pytest.mark.parametrize("name", ["halving", "population"])
def test_wherever_the_file_was_cut_nothing_half_written_is_believed(name, tmp_path):
    path, expected = tmp_path / "search.jsonl", unbroken(name)
    run(Journal(searches()[name], path), Here(hill))
    whole = path.read_bytes()
    line = whole[: len(whole) // 2].rfind(b"\n")
    for cut in [1, line, line + 1, line + 2, line + 60, len(whole) - 1]:
        path.write_bytes(whole[:cut])
        again = Journal(searches()[name], path)
        text = path.read_bytes()
        assert text.endswith(b"\n") and len(text) <= max(cut, text.find(b"\n") + 1)
        assert run(again, Here(hill)) == expected
        again.close()
        assert path.read_bytes() == whole


def test_a_search_that_is_really_killed_goes_on(tmp_path):
    path, kills = tmp_path / "search.jsonl", 0
    expected = unbroken("population")
    for _ in range(20):
        command = [sys.executable, "-m", "tests.training.search.killed", str(path)]
        process = subprocess.Popen(command, cwd=ROOT)
        try:
            before = path.read_bytes().count(b"\n") if path.exists() else 0
            deadline = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < deadline:
                if path.exists() and path.read_bytes().count(b"\n") > before + 25:
                    break
                time.sleep(0.002)
        finally:
            process.kill()
        if process.wait() == 0:
            break
        kills += 1
    assert kills >= 3
    assert Journal(searches()["population"], path).done == expected


def test_states_are_kept_only_for_those_that_go_on_from_them(tmp_path):
    for name in ("random", "population"):
        path = tmp_path / f"{name}.jsonl"
        run(Journal(searches()[name], path), Here(hill))
        assert path.with_suffix(".states").exists() == (name == "population")


def test_another_search_or_other_data_is_refused(tmp_path):
    path = tmp_path / "search.jsonl"
    run(Journal(searches()["random"], path, {"data": "digits"}), Here(hill))
    with pytest.raises(ValueError, match=r"line 2: .* the journal of another search"):
        Journal(searches(1)["random"], path, {"data": "digits"})
    with pytest.raises(ValueError, match=r"line 1: expected .*mnist"):
        Journal(searches()["random"], path, {"data": "mnist"})


@pytest.mark.parametrize("damage", ["not JSON", "[]", '{"tell": 99, "score": 1, "report": {}}'])
def test_a_damaged_line_is_named(tmp_path, damage):
    path = tmp_path / "search.jsonl"
    run(Journal(searches()["random"], path), Here(hill))
    lines = path.read_text().splitlines()
    lines[5] = damage
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match=f"{path.name}, line 6: "):
        Journal(searches()["random"], path)


def test_a_damaged_state_is_named(tmp_path):
    path = tmp_path / "search.jsonl"
    stopped("population", path, 10)
    for state in path.with_suffix(".states").glob("*.npz"):
        state.write_bytes(state.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"\.npz: expected the state of a trial"):
        run(Journal(searches()["population"], path), Here(hill))


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_score_that_is_no_number_is_refused_and_not_noted(tmp_path, score):
    path = tmp_path / "search.jsonl"
    journal = Journal(searches()["random"], path)
    trial = journal.ask()
    with pytest.raises(ValueError, match="score: expected a finite number"):
        journal.tell(trial, Result(score, {}, {}))
    assert "tell" not in path.read_text()


def test_lines_say_what_was_asked_and_told(tmp_path):
    path = tmp_path / "search.jsonl"
    stopped("halving", path, 1)
    about, asked, told, again = map(json.loads, path.read_text().splitlines())
    assert (about, asked["ask"]["number"], told["tell"]) == ({"about": {}}, 0, 0)
    assert again["ask"]["epochs"] == 1
    with np.load(path.with_suffix(".states") / "0.npz") as file:
        assert list(file) == ["done"]
