"""Pictures are drawn without a screen, and closed."""

import matplotlib
import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def closed():
    matplotlib.use("Agg")
    yield
    plt.close("all")
