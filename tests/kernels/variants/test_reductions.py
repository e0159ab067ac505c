import pytest

from cnnlab import check
from cnnlab.lessons import lesson_11


@pytest.mark.parametrize(
    "kernel, options",
    [
        (lesson_11.bias_by_filter, {}),
        (lesson_11.bias_private, {"n_blocks": 4}),
        (lesson_11.bias_tree, {}),
    ],
)
def test_a_reduction_has_the_references_sums(kernel, options):
    verdict = check.kernel("conv_backward_bias", kernel, **options)
    assert verdict, str(verdict)
