import numpy as np
import pytest

from cnnlab import cuda
from cnnlab.course import results
from cnnlab.measure.timing import Timing, compare

TIMES = {"loops": Timing("loops", (4.0, 4.0, 4.0)), "vector": Timing("vector", (0.5, 0.4, 0.5))}


def test_recorded_times_become_a_table(tmp_path, monkeypatch):
    monkeypatch.setenv("CNNLAB_RESULTS", str(tmp_path / "new" / "00_toy"))
    results.record("One epoch, batch 64", TIMES, base="loops")
    [(heading, rows)] = results.recorded(tmp_path)
    assert heading == "One epoch, batch 64"
    assert rows[0] == ("loops", str(TIMES["loops"]), "base")
    assert rows[1][0] == "vector"
    assert rows[1][2].startswith("8.00× (8.00 to 10.0")
    lines = results.table_text((heading, rows)).splitlines()
    assert lines[2].index("4.00 s") == lines[3].index("500 ms") == lines[1].index("median")


def test_a_time_of_the_emulator_is_told_as_such(tmp_path, monkeypatch):
    source = 'extern "C" __global__ void one(float* y) { y[threadIdx.x] = 1; }'
    kernel, y = cuda.traced_device(source, []), np.zeros(4, np.float32)
    calls = {"numpy": lambda: y.fill(1), "device": lambda: kernel.launch("one", 1, 4, y)}
    monkeypatch.setenv("CNNLAB_RESULTS", str(tmp_path))
    results.record("A kernel", compare(calls, repeats=2), base="numpy")
    [(_, rows)] = results.recorded(tmp_path)
    assert [row[0] for row in rows] == ["numpy", "device, on the emulator"]


def test_record_refuses_what_it_cannot_compare_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("CNNLAB_RESULTS", str(tmp_path))
    with pytest.raises(ValueError, match="base: expected one of loops, vector, got 'numpy'"):
        results.record("x", TIMES, base="numpy")
    with pytest.raises(ValueError, match="samples: expected as many of each timing"):
        results.record("x", TIMES | {"short": Timing("short", (1.0,))}, base="loops")
    assert list(tmp_path.iterdir()) == []


def test_record_outside_the_course_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.delenv("CNNLAB_RESULTS", raising=False)
    monkeypatch.chdir(tmp_path)
    results.record("x", TIMES, base="loops")
    assert list(tmp_path.iterdir()) == []
