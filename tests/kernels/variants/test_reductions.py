import pytest

from cnnlab import check
from cnnlab.kernels.variants import reductions


@pytest.mark.parametrize(
    "kernel, options",
    [
        (reductions.bias_by_filter, {}),
        (reductions.bias_private, {"n_blocks": 4}),
        (reductions.bias_tree, {}),
    ],
)
def test_a_reduction_has_the_references_sums(kernel, options):
    verdict = check.kernel("conv_backward_bias", kernel, **options)
    assert verdict, str(verdict)
