import numpy as np

from cnnlab.lessons.lesson_50 import Counted, Tally


def test_products_and_multiples_are_counted_apart():
    tally = Tally()
    a, b = Counted(3, tally), Counted(4, tally)
    result = [a * b, 2 * a, a / 2, np.float32(2) * b, a + b - a, 1 - a, a + 1, -b]
    assert [each.value for each in result] == [12, 6, 1.5, 8, 4, -2, 4, -4]
    assert (tally.products, tally.by_constants) == (1, 3)


def test_products_of_matrices_are_followed():
    tally = Tally()
    counted = np.vectorize(lambda v: Counted(v, tally), otypes="O")
    left, right = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    product = counted(left) @ counted(right)
    assert np.vectorize(lambda v: v.value)(product).tolist() == (left @ right).tolist()
    assert (tally.products, tally.by_constants) == (24, 0)
    left @ counted(right)
    assert (tally.products, tally.by_constants) == (24, 24)
