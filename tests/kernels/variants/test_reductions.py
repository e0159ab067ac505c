import pytest

from cnnlab import check
from cnnlab.kernels.variants import shared


@pytest.mark.parametrize(
    "kernel, options",
    [
        (shared.bias_by_filter, {}),
        (shared.bias_private, {"n_blocks": 4}),
        (shared.bias_tree, {}),
    ],
)
def test_a_reduction_has_the_references_sums(kernel, options):
    verdict = check.kernel("conv_backward_bias", kernel, **options)
    assert verdict, str(verdict)
