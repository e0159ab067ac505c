import json
import time

import psutil
import pytest

from cnnlab.measure.search_job import main
from cnnlab.measure.search_race import searches
from tests.ranks import programs

pytestmark = pytest.mark.mpi
JOB = "-m", "cnnlab.measure.search_job", "halving"


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def ranks_of(path):
    """The processes that search with this journal."""
    return [p for p in psutil.process_iter(["cmdline"]) if str(path) in (p.info["cmdline"] or ())]


def test_a_job_that_is_killed_goes_on_with_other_ranks(tmp_path, capsys):
    path = tmp_path / "search.jsonl"
    process = programs.start(3, *JOB, "--journal", str(path))
    try:
        deadline = time.monotonic() + 60
        while not (path.exists() and path.read_bytes().count(b"\n") > 40):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.005)
    finally:
        process.kill()
        process.communicate()
    deadline = time.monotonic() + 10
    while ranks_of(path) and time.monotonic() < deadline:  # they end after mpiexec
        time.sleep(0.05)
    assert not ranks_of(path)
    before = path.read_bytes()
    before = before[: before.rfind(b"\n") + 1]
    told = [event["tell"] for event in map(json.loads, before.splitlines()) if "tell" in event]
    assert 10 < len(told) < 70
    main(["halving", "--journal", str(path)])
    assert capsys.readouterr().out.startswith(f"{len(told)} trials told before\n")
    assert path.read_bytes().startswith(before)
    after = lines(path)
    asked = {event["ask"]["number"]: event["ask"] for event in after if "ask" in event}
    told = [event["tell"] for event in after if "tell" in event]
    assert sorted(told) == sorted(asked) == list(range(len(asked)))
    assert sum(ask["epochs"] for ask in asked.values()) >= searches(0)["halving"].budget
