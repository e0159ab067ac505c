import json

import pytest

from cnnlab.measure import bench

REPORT = {
    "results": [{"kernels": "loops"}],
    "machine": {"cpu": "Intel Xeon @ 2.20GHz", "simd": "AVX-512, 16"},
}


@pytest.mark.parametrize(
    ("gpu", "name"),
    [
        (None, "bench-intel-xeon-2-20ghz-avx-512.json"),
        ("Tesla T4", "bench-intel-xeon-2-20ghz-avx-512-tesla-t4.json"),
    ],
)
def test_a_report_is_kept_under_the_name_of_its_machine(tmp_path, monkeypatch, gpu, name):
    monkeypatch.setattr(bench.cuda, "gpu", lambda: (gpu is not None, gpu))
    monkeypatch.setattr(bench.cuda, "where", lambda: gpu)
    path = bench.keep(REPORT, tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / name
    assert json.loads(path.read_text()) == REPORT and path.read_text().endswith("}\n")
    assert [file.name for file in path.parent.iterdir()] == [name]


def test_recorded_rows_are_those_of_all_files(tmp_path):
    assert bench.recorded(tmp_path / "nowhere") == []
    for number in (1, 2):
        content = {"results": [{"kernels": "loops", "number": number}]}
        (tmp_path / f"bench-{number}.json").write_text(json.dumps(content))
    (tmp_path / "other.json").write_text("{}")
    assert [row["number"] for row in bench.recorded(tmp_path)] == [1, 2]


def test_the_committed_measurements_can_be_read():
    rows = bench.recorded()
    assert {"loops", "vector", "threads"} <= {row["kernels"] for row in rows}
    assert all(row["seconds_per_epoch"] > 0 for row in rows)
