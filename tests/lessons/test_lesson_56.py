"""The compressors in the cells of lesson 56 send what the package's send."""

from functools import partial

import numba
import numpy as np
import pytest

from cnnlab.distributed.compression import CompressedSum
from cnnlab.distributed.compressors.bits import Nearest, OneBit, Qsgd
from cnnlab.ranks.virtual import World
from tests.lessons import breaking

VALUES = np.random.default_rng(0).standard_normal(2048).astype(np.float32)


@pytest.fixture(scope="module")
def page():
    """What the lesson's cells of matter define."""
    return breaking.defined("56", np=np, numba=numba, partial=partial, __name__="page")


def arrives(theirs) -> np.ndarray:
    """What one of the package's compressors makes of VALUES."""
    result = np.empty_like(VALUES)
    theirs.decode(theirs.encode(VALUES), result)
    return result


@pytest.mark.parametrize("n_bits", [2, 4, 8])
def test_levels_are_the_packages(page, n_bits):
    own, theirs = page["Qsgd"](512, 0, n_bits, chance=0.5), Nearest(2048, 0, n_bits)
    message = own.encode(VALUES)
    np.testing.assert_allclose(own.decode(message), arrives(theirs), rtol=1e-6)
    codes = page["unpack"](message[:, 4:], n_bits).reshape(-1)
    assert message.nbytes == theirs.n_bytes and (codes == theirs.codes).all()


@pytest.mark.parametrize("n_bits", [2, 4, 8])
def test_the_largest_chance_makes_no_level_above_the_highest(page, n_bits):
    largest, values = 1 - 2**-24, np.float32([1, -1, 0.9, -0.7, 0, 0.1, 0.5, 1])
    sent = page["Qsgd"](8, 0, n_bits, chance=largest)
    assert (abs(sent.decode(sent.encode(values)))[[0, 1, 7]] == 1).all()
    codes = [int(page["code_of"](v, np.float32(7), 0x331DA083)) for v in values[:2]]
    assert codes == [14, 15]  # hashed there to all ones


def test_by_chance_the_error_is_the_packages(page):
    own, theirs = page["Qsgd"](512), Qsgd(2048)
    mine, other = (
        np.mean([np.square(make() - VALUES).sum() for _ in range(50)])
        for make in (lambda: own.decode(own.encode(VALUES)), lambda: arrives(theirs))
    )
    assert mine == pytest.approx(other, rel=0.05)


def test_sums_of_signs_are_the_packages_residuals_and_all(page):
    def program(comm):
        up, down = (page["Feedback"](page["OneBit"](512)) for _ in range(2))
        theirs, pairs = CompressedSum(comm, OneBit), []
        for k in range(5):
            values = np.roll(VALUES, k + 7 * comm.rank) * np.float32(1 + comm.rank)
            own, flat = page["compressed_sum"](comm, values, up, down), values.copy()
            theirs.add_up(flat)
            pairs.append((own, flat))
        return pairs

    for pairs in World(4).run(program):
        for own, theirs in pairs:
            np.testing.assert_allclose(own, theirs, rtol=1e-4, atol=1e-4)
