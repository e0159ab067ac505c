import matplotlib
import matplotlib.pyplot as plt
import pytest

from cnnlab.plots import charts

matplotlib.use("Agg")
ROWS = [
    {"kernels": name, "samples": [seconds] * 3, "n_images": 60_000, "batch": 64}
    for name, seconds in (("vector", 1.0), ("loops", 8.0))
]


@pytest.mark.parametrize("rows, base", [(ROWS, "loops"), (ROWS[:1], "vector")])
def test_the_plot_of_a_report_is_saved_and_closed(tmp_path, monkeypatch, rows, base):
    drawn, speedups = {}, charts.speedups

    def noted(timings, **how):
        drawn.update(how, names=list(timings))
        return speedups(timings, **how)

    monkeypatch.setattr(charts, "speedups", noted)
    machine = {"simd": "AVX2, 8 float32 lanes"}
    charts.draw(
        {"results": rows, "ratio_to": "vector", "machine": machine}, tmp_path / "speedup.png"
    )
    assert (tmp_path / "speedup.png").stat().st_size > 5_000
    assert drawn["base"] == base and drawn["names"] == [row["kernels"] for row in rows]
    assert drawn["title"] == "An epoch of 60,000 images, batches of 64, with AVX2"
    assert plt.get_fignums() == []
