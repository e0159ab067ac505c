import inspect

import numba
import numpy as np
import pytest

from cnnlab.check.machine_code import vector_instructions
from cnnlab.kernels.variants import one_core
from cnnlab.measure import timing


def block(c, f, h, w, seed=0):
    rng = np.random.default_rng(seed)
    draw = lambda *shape: rng.uniform(-1, 1, shape).astype(np.float32)  # noqa: E731
    return one_core.Block(draw(16, c, h, w), draw(f, c, 5, 5), draw(f))


@pytest.mark.parametrize("rung", one_core.RUNGS)
@pytest.mark.parametrize("shape", [(1, 6, 28, 28), (2, 3, 9, 14), (3, 1, 13, 5)])
def test_every_rung_is_the_same_function(rung, shape):
    one = block(*shape)
    timing.same(one.result(rung), one.expected(), name=rung, rtol=1e-5)


def test_rungs_come_in_order_and_stand_alone():
    assert [name[0] for name in one_core.RUNGS] == [str(i + 1) for i in range(len(one_core.RUNGS))]
    for name, kernel in one_core.RUNGS.items():
        function = kernel.py_func
        assert f"_{name[0]}_" in function.__name__
        alone = {"np": np, "numba": numba}
        exec(inspect.getsource(function), alone)
        one = block(1, 2, 6, 7)
        wanted = one.result(name).copy()
        x, y = (one.images, one.y) if name < "4" else (one.lanes, one.y_lanes)
        alone[function.__name__].py_func(x, one.w, one.b, y)
        got = y if name < "4" else y.reshape(2, 2, 3, 16).transpose(3, 1, 0, 2)
        np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_a_block_has_sixteen_images():
    with pytest.raises(ValueError, match="images: expected 16, got 3"):
        one_core.Block(np.zeros((3, 1, 9, 9), np.float32), np.zeros((1, 1, 5, 5)), np.zeros(1))


def test_vector_instructions_are_seen_where_there_are_some():
    one = block(1, 2, 12, 12)
    for name in one_core.RUNGS:
        one.run(name)
    seen = {name: vector_instructions(kernel) for name, kernel in one_core.RUNGS.items()}
    assert seen["1 naive"] == 0 and seen["3 rows"] > 0
    assert seen["6 polynomial"] > seen["4 batch innermost"] > 0
    with pytest.raises(ValueError, match="is not compiled yet"):
        vector_instructions(numba.njit(lambda x: x))
