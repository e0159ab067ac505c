"""Pictures of trainings under a server."""

from collections import Counter

import numpy as np
import pytest

from cnnlab.distributed.ledger import Ledger
from cnnlab.measure.server_runs import Look, Run
from cnnlab.plots import servers

RUN = Run([Look(10, 1e-3, 3.0), Look(20, 2e-3, 1.0)], Ledger(2, 20), 1e4)
RUN.ledger.missed = Counter({0: 1, 2: 3})


def test_staleness_is_drawn_as_shares_with_the_mean():
    axes = servers.staleness({"one": RUN, "other": RUN})
    bars = {round(p.get_x() + p.get_width() / 2): p.get_height() for p in axes[0].patches}
    assert bars == pytest.approx({0: 0.25, 2: 0.75})
    assert axes[1].lines[0].get_xdata()[0] == 1.5
    assert axes[0].texts[0].get_text() == "one: 1.5 on average, 2 at most"


def test_the_rarest_are_in_the_picture():
    rare = Run(RUN.looks, Ledger(2, 20), 1e4)
    rare.ledger.missed = Counter({1: 5000, 30: 1})
    axes = servers.staleness({"one": RUN, "rare": rare})
    assert axes[0].get_xlim()[1] > 30 and axes[1].get_ylim()[0] < 1 / 5001


def test_losses_are_drawn_over_images_and_over_time():
    (left, right), _ = servers.losses({"a": {"x": RUN}, "b": {"x": RUN}})
    np.testing.assert_array_equal(left.lines[0].get_xydata(), [(10, 3), (20, 1)])
    np.testing.assert_allclose(right.lines[0].get_xydata(), [(1, 3), (2, 1)])
    assert left.get_title("left") == "a"


def test_each_group_has_a_time_axis_of_its_own():
    slow = Run([Look(10, 1.0, 3.0), Look(20, 2.0, 1.0)], Ledger(2, 20), 1e4)
    (_, first), (_, second) = servers.losses({"a": {"x": RUN}, "b": {"x": slow}})
    assert first.get_xlim()[1] < 3 and second.get_xlim()[1] >= 2000


def test_throughput_has_the_ideal_up_to_the_roof():
    axes = servers.throughputs([1, 2, 4], {"p": {"x": [5, 9, 11]}}, 12)
    np.testing.assert_allclose(axes[0].lines[-1].get_ydata(), [5, 10, 12])
    np.testing.assert_allclose(axes[0].lines[0].get_ydata(), [5, 9, 11])
