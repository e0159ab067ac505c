import nbformat
import numpy as np
import pytest

from cnnlab.course import parts
from cnnlab.course.render import kernel_source
from cnnlab.kernels import loops, reference
from cnnlab.lessons import lesson_01

RNG = np.random.default_rng(0)
X, W = RNG.random((7, 9)), RNG.normal(size=(3, 3))
Z = np.array([[(X[p : p + 3, q : q + 3] * W).sum() for q in range(7)] for p in range(5)])


def test_the_kernels_of_the_cells_are_those_of_the_package():
    nb = nbformat.read(parts.NOTEBOOKS / "01_convolution.ipynb", as_version=4)
    code = "\n".join(cell.source for cell in nb.cells if cell.cell_type == "code")
    for name in ("forward", "backward_weights", "backward_bias", "backward_input"):
        assert kernel_source(f"loops.conv_{name}") in code


def test_a_step_of_the_window_says_what_it_shares_and_how_much_is_done():
    stepper = lesson_01.sliding(X, W, Z, [(0, 0), (0, 1), (1, 2), (4, 6)])
    assert len(stepper) == 4
    for results, adds, shared in ((1, 9, 0), (2, 18, 6), (10, 90, 4), (35, 315, 0)):
        counter = f"Results: {results}; multiply-adds: {adds}."
        assert f"{counter} Pixels shared with the frame before: {shared}." in stepper.html


@pytest.mark.parametrize("function, share", [(loops.conv_backward_bias, 1), (np.sum, 1 / 3)])
def test_the_longest_chain_is_a_share_of_the_terms(function, share):
    numpy = lambda dz, db: np.sum(dz, axis=(0, 2, 3), out=db)  # noqa: E731
    got = lesson_01.longest_chain(numpy if function is np.sum else function)
    assert 0.99 * share < got <= share if share == 1 else 0 < got < share


def test_one_suspect_is_wrong():
    dz, w, x = (
        RNG.normal(size=(2, 3, 4, 6)),
        RNG.normal(size=(3, 1, 4, 4)),
        RNG.random((2, 1, 7, 9)),
    )
    got, expected = np.empty_like(x), np.empty_like(x)
    lesson_01.suspects["input"](dz, w, got)
    reference.conv_backward_input(dz, w, expected)
    wrong = abs(got - expected).max(axis=(0, 1, 2)) > 1e-12
    assert wrong.tolist() == [False] * 5 + [True] * 4
