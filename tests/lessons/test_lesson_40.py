from matplotlib.colors import to_hex

from cnnlab.lessons.lesson_40 import lower_bounds
from cnnlab.plots.style import WRONG


def test_a_claim_below_a_bound_is_orange():
    claimed = {"near": 1e-6, "far": 1e-6, "fine": 1e-6}
    bounds = {"near": {"chain": 1.1e-6}, "far": {"chain": 1e-5, "bytes": 1e-8}, "fine": {"x": 1e-7}}
    ax = lower_bounds(claimed, bounds)
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    assert [to_hex(dot.get_color()) == WRONG for dot in dots] == [True, True, False]
    texts = [text.get_text() for text in ax.texts]
    assert "claimed 1.00 µs" in texts and "chain 10.0 µs" in texts and "bytes 10.0 ns" in texts
