import pytest

from cnnlab.check import inputs
from cnnlab.kernels import CONTRACT, KERNELS
from cnnlab.runtime import thread_pool

ONE_FILTER = inputs.case("one filter, whose images the threads share", 64, 3, 1, 12, 13, 5)


@pytest.mark.skipif(thread_pool.size() < 2, reason="Numba has room for one thread only")
@pytest.mark.parametrize("operation", [name for name in CONTRACT if name.startswith("conv")])
def test_the_number_of_threads_changes_no_bit(operation):
    """Threads that add to the same sums would add in another order, even where none is lost."""
    result = []
    for n_threads in (1, 2):
        arrays = inputs.draw(operation, ONE_FILTER)
        with thread_pool.threads(n_threads):
            KERNELS["threads"].kernel(operation)(*arrays.values())
        *_, output = arrays.values()
        result.append(output.tobytes())
    assert result[0] == result[1]
