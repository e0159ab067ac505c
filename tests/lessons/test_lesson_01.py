import json
import re

import numpy as np
import pytest

from cnnlab.lessons import lesson_01

RNG = np.random.default_rng(0)
X, W = RNG.random((7, 9)), RNG.normal(size=(3, 3))
Z = np.array([[(X[p : p + 3, q : q + 3] * W).sum() for q in range(7)] for p in range(5)])


def test_a_slider_goes_over_every_position_and_carries_what_it_draws():
    page = lesson_01.slider(X, W, Z, start=(1, 2))._repr_html_()
    assert re.search(r'max="(\d+)" value="(\d+)"', page).groups() == ("34", "9")
    data = json.loads(re.search(r"= (\{\"x\".*\});", page)[1])
    for name, array in {"x": X, "w": W, "z": Z}.items():
        np.testing.assert_allclose(data[name], array, atol=5e-4)
    assert "http" not in page and "5 × 7 positions" in repr(lesson_01.slider(X, W, Z))


def test_a_slider_wants_a_result_for_each_position():
    with pytest.raises(ValueError, match=r"z: expected shape \(5, 7\), got \(5, 6\)"):
        lesson_01.slider(X, W, Z[:, 1:])


def test_frames_show_the_window_its_products_and_what_is_done():
    page = lesson_01.frames(X, W, Z, [(0, 0), (4, 6)]).figure
    image, products, result = page.axes[3:]
    np.testing.assert_allclose(products.images[0].get_array(), X[4:7, 6:9] * W)
    assert image.patches[0].get_xy() == (5.5, 3.5) and image.patches[0].get_width() == 3
    assert np.isfinite(result.images[0].get_array().filled(np.nan)).all()
    first = page.axes[2].images[0].get_array().filled(np.nan)
    assert np.isfinite(first).sum() == 1 and first[0, 0] == Z[0, 0]
    assert f"{Z[4, 6]:.2f}" in result.get_title()
