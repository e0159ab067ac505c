import numpy as np
import pytest

from cnnlab.kernels import reference
from cnnlab.kernels.variants import one_core
from cnnlab.kernels.variants.one_core_sums import sums_only
from cnnlab.measure import timing


@pytest.mark.parametrize("rung", one_core.RUNGS)
def test_a_rung_without_its_sigmoid_leaves_the_preactivation(rung):
    rng = np.random.default_rng(0)
    x, w, b = (rng.uniform(-1, 1, s).astype(np.float32) for s in ((16, 2, 9, 11), (3, 2, 5, 5), 3))
    block, z = one_core.Block(x, w, b), np.empty((16, 3, 5, 7))
    reference.conv_forward(*(a.astype(np.float64) for a in (x, w, b)), z)
    timing.same(block.result(rung, sums_only(rung)), z, name=rung, rtol=1e-5)
    timing.same(block.result(rung), block.expected(), name=rung, rtol=1e-5)


def test_the_options_of_the_rung_are_kept():
    for rung, kernel in one_core.RUNGS.items():
        assert sums_only(rung).targetoptions == kernel.targetoptions
