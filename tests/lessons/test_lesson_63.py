"""The steps of a product in planes, and what is read from assembly."""

from types import SimpleNamespace

import numpy as np
import pytest

from cnnlab.lessons import lesson_63 as lesson


def test_the_steps_end_with_the_product():
    x, w = np.array([7, 0, 3, 5]), np.array([3, 2, 1, 0])
    steps = lesson.passes(x, w, 3, 2)
    assert len(steps) == 3 * 2
    assert f"6 of 6. Ones: 1, each counts 8. The sum is {x @ w}." in steps.html


@pytest.mark.parametrize(
    "code, expected",
    [
        ("\tpopcntq\t%rax, %rax\n\tvpshufb\t%ymm0, %ymm1, %ymm2\n", "vpshufb"),
        ("\tvpshufb\t%zmm0, %zmm1, %zmm2\n\tvpopcntq\t%zmm0, %zmm1\n", "vpopcntq"),
        ("\tcnt\tv0.16b, v0.16b\n", "cnt"),
        ("\taddq\t%rax, %rax\n", "shifts and additions"),
    ],
)
def test_the_widest_count_is_named(code, expected):
    kernel = SimpleNamespace(inspect_asm=lambda: {"signature": code})
    assert lesson.counted_by(kernel) == expected
