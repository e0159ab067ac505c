import functools
import signal
import sys
import threading
import time

import numba
import numpy as np
import pytest

import cnnlab
from cnnlab import kernels
from cnnlab.check.answer import OutOfTime, borrowed, limit, parallel
from cnnlab.kernels import KERNELS, loops


def own(z, y):
    y[:] = np.maximum(z, 0)


@numba.njit(parallel=True)
def in_parallel(z, y):
    y[:] = np.maximum(z, 0)


def by_module(z, y):
    loops.relu(z, y)


def by_attribute(z, y):
    cnnlab.kernels.reference.relu(z, y)


def by_list(z, y):
    KERNELS["vector"].relu(z, y)


def by_import(z, y):
    from cnnlab.kernels.reference import relu

    relu(z, y)


def by_name(z, y):
    import importlib

    importlib.import_module("cnnlab.kernels.loops").relu(z, y)


def by_another(z, y):
    by_module(z, y)


def by_default(z, y, relu=loops.relu):
    relu(z, y)


def by_closure(relu):
    return lambda z, y: relu(z, y)


class Callable:
    def __init__(self, relu):
        self.relu = relu

    def __call__(self, z, y):
        self.relu(z, y)


class Lender:
    def method(self, z, y):
        loops.relu(z, y)


BORROWED = [
    loops.relu,
    KERNELS["threads"].relu,
    by_module,
    by_attribute,
    by_list,
    by_import,
    by_name,
    by_another,
    by_default,
    by_closure(loops.relu),
    lambda z, y: [loops.relu(a, b) for a, b in zip(z, y, strict=True)],
    numba.njit(by_module),
    functools.partial(by_closure, loops.relu),
    functools.partial(by_module),
    Callable(loops.relu),
    Lender().method,
]


@pytest.mark.parametrize("answer", BORROWED)
def test_an_answer_that_names_a_strategy_is_borrowed(answer):
    verdict = borrowed("relu", answer)
    assert not verdict and "relu: expected a kernel of your own, got one of cnnlab" in str(verdict)


OWN = [own, numba.njit(own), by_closure(own), Callable(own), np.positive, functools.partial(own)]


@pytest.mark.parametrize("answer", OWN)
def test_an_answer_that_names_none_is_not(answer):
    assert borrowed("relu", answer) is None


def test_what_is_imported_beside_an_answer_does_not_count():
    assert loops in vars(sys.modules[__name__]).values() and kernels.loops


def test_a_kernel_is_parallel_if_it_or_one_that_it_calls_is():
    assert parallel(in_parallel)
    assert parallel(lambda z, y: in_parallel(z, y))
    assert not parallel(own) and not parallel(numba.njit(own)) and not parallel(loops.relu)


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no timer that interrupts")


def test_time_is_limited_and_the_timer_left_as_it_was():
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(OutOfTime), limit(0.1):
        time.sleep(5)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    with limit(60):
        with limit(60):
            pass
        assert 50 < signal.getitimer(signal.ITIMER_REAL)[0] <= 60
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_time_that_is_up_as_the_block_ends_leaves_no_timer():
    block = limit.__wrapped__(60)  # the generator itself

    def trace(frame, event, _):
        if frame is block.gi_frame and event == "line":  # its first after the block
            signal.raise_signal(signal.SIGALRM)
        return trace

    before, _ = sys.gettrace(), next(block)
    sys.settrace(trace)
    with pytest.raises(OutOfTime):
        next(block)
    sys.settrace(before)
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_another_thread_than_the_main_one_has_no_limit():
    done = []

    def work():
        with limit(0.01):
            time.sleep(0.1)
        done.append(True)

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    assert done


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_limit_holds_also_where_python_drops_an_exception():
    class Deaf:
        def __del__(self):  # what is raised in here is dropped
            time.sleep(0.2)

    def busy():  # a function, as an answer is: Python 3.13.0 may leave a `with` out at a loop's end
        Deaf()
        end = time.monotonic() + 20
        while time.monotonic() < end:
            pass

    with pytest.raises(OutOfTime), limit(0.1):
        busy()
