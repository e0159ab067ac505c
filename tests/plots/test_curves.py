import matplotlib
import matplotlib.pyplot as plt
import numpy as np

from cnnlab.lessons import lesson_22
from cnnlab.measure.timing import Ratio

matplotlib.use("Agg")


def test_ratios_are_drawn_over_their_sizes():
    result = {"memory": [Ratio(0.5, 0.4, 0.6, 9), Ratio(0.9, 0.8, 1.0, 9)]}
    ax = lesson_22.ratios_by_size([16, 64], result, unit="images", ratio="efficiency")
    points = np.array(ax.containers[0].lines[0].get_data(), float)
    np.testing.assert_allclose(points, [[16, 64], [0.5, 0.9]])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["16", "64"]
    plt.close("all")
