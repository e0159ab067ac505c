import subprocess
import sys

import numba
import pytest

from cnnlab.runtime import thread_pool
from tests.programs import run


@pytest.fixture(params=[("tbb", "tbbpool"), ("omp", "omppool"), ("workqueue", "workqueue")])
def layer(request):
    """A threading layer of Numba's that can be loaded here."""
    name, module = request.param
    if subprocess.run([sys.executable, "-c", f"import numba.np.ufunc.{module}"]).returncode:
        pytest.skip(f"no {name} here")
    return name


def run_on(layer, program, n_threads=64):
    """What a program prints that has room for so many threads of a layer."""
    variables = {"NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": str(n_threads)}
    return run(program, **variables).stdout


def test_the_number_of_threads_is_restored_whatever_happens():
    before = numba.get_num_threads()
    with thread_pool.threads(1) as n:
        assert n == numba.get_num_threads() == 1
        with pytest.raises(RuntimeError), thread_pool.threads(thread_pool.size()):
            assert numba.get_num_threads() == thread_pool.size()
            raise RuntimeError
        assert numba.get_num_threads() == 1
    assert numba.get_num_threads() == before
    with thread_pool.threads() as n:
        assert n == min(thread_pool.size(), thread_pool.usable_cores())


@pytest.mark.parametrize("n_threads", [0, -1, 1.5, True, "2"])
def test_impossible_numbers_of_threads_are_refused(n_threads):
    message = f"n_threads: expected a whole number of at least 1, got {n_threads!r}"
    with pytest.raises(ValueError, match=message):
        thread_pool.reserve(n_threads)
    with pytest.raises(ValueError, match=message), thread_pool.threads(n_threads):
        pytest.fail("nothing can run on them")


@pytest.mark.parametrize("text", ["abc", "0", "-2", "1.5"])
def test_a_size_that_is_no_number_is_refused_by_its_name(text, monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", text)
    monkeypatch.delitem(sys.modules, "numba")
    with pytest.raises(ValueError, match="NUMBA_NUM_THREADS: expected a whole number of at least"):
        thread_pool.size()


def test_more_threads_than_there_is_room_for_are_refused_with_the_way_to_get_it():
    room, many = thread_pool.size(), thread_pool.size() + 1
    message = f"n_threads: expected at most {room}, .* got {many}; set NUMBA_NUM_THREADS={many} "
    with pytest.raises(ValueError, match=message):
        thread_pool.reserve(many)
    with pytest.raises(ValueError, match="n_threads: expected at most 1024, got 100000"):
        thread_pool.reserve(100_000)  # no memory for them


def test_room_is_made_before_numba_is_imported():
    program = """
from cnnlab.runtime import thread_pool
thread_pool.reserve(13)
import numba
assert numba.config.NUMBA_NUM_THREADS == 13 == thread_pool.size()
"""
    run(program, without="NUMBA_NUM_THREADS")


@pytest.mark.parametrize("use", ["thread_pool.size()", "import cnnlab"])
def test_a_numba_that_another_thread_is_importing_is_waited_for(use):
    program = f"""
import sys, threading, time
if {use!r}.startswith("thread_pool"):
    from cnnlab.runtime import thread_pool
importing = threading.Thread(target=lambda: __import__("numba"))
importing.start()
while "numba" not in sys.modules:
    time.sleep(1e-4)
{use}
importing.join()
"""
    run(program)


FORKING = """
import os
import numpy as np
from cnnlab.kernels import KERNELS

def use(name):
    z = np.ones((3, 4), np.float32)
    KERNELS[name].sigmoid(z, np.empty_like(z))

def in_a_child(name):
    child = os.fork()
    if child == 0:
        try:
            use(name)
            print("done")
        except RuntimeError as error:
            print(error)
        finally:
            os.sys.stdout.flush()
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, "ended by a signal"

in_a_child("threads")
use("threads")
in_a_child("vector")
in_a_child("threads")
use("threads")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="GNU OpenMP is that of Linux")
def test_a_forked_child_that_openmp_would_end_is_refused(layer):
    said = run_on(layer, FORKING, 2).splitlines()
    assert said[:2] == ["done", "done"] and len(said) == 3
    refused = "threads: expected the process that started them, got a child that it forked; "
    assert said[2].startswith(refused) if layer == "omp" else said[2] == "done"


EVERY_NUMBER = """
import numpy as np
from cnnlab.kernels import KERNELS
from cnnlab.kernels.composition import loss_and_gradients
from tests.networks import report_network
from cnnlab.runtime import thread_pool
from cnnlab.training import Method, Replica, Sgd

net = report_network(2, 13, 14, filters=3, kernel=4, pool=2, classes=5)
params, grads, exact = net.parameters(), net.zeros(), net.zeros()
rng = np.random.default_rng(0)
for n_images in (1, 7, 50, 300):
    x = rng.random((n_images, *net.image_shape), np.float32)
    labels = rng.integers(0, 5, n_images)
    loss = loss_and_gradients(KERNELS["vector"], params, x, labels, exact)
    for n_threads in (1, 2, 3, 8, 16, 64):
        with thread_pool.threads(n_threads):
            grads.flat[:] = np.nan
            result = loss_and_gradients(KERNELS["threads"], params, x, labels, grads)
            assert abs(result - loss) < 1e-5 * loss, (n_images, n_threads)
            assert np.allclose(grads.flat, exact.flat, rtol=1e-4, atol=1e-4), (n_images, n_threads)
            again = grads.flat.copy()
            loss_and_gradients(KERNELS["threads"], params, x, labels, grads)
            assert np.array_equal(grads.flat, again), (n_images, n_threads)

order = rng.permutation(300)

def trained(kernels):
    replica = Replica(KERNELS[kernels], net.parameters(), x, labels, 20, Sgd(0.1))
    Method().steps(replica, order)
    return replica.params.flat

alone = trained("vector")
assert not np.allclose(alone, net.parameters().flat, atol=1e-3)
for n_threads in (1, 2, 3, 8, 64):
    with thread_pool.threads(n_threads):
        assert np.allclose(trained("threads"), alone, atol=1e-5), n_threads
params = net.parameters()
"""


AT_ONCE = """
import threading

threads = KERNELS["threads"]
x, labels = np.ones((40, *net.image_shape), np.float32), np.arange(40) % 5

def work():
    grads = net.zeros()
    z = np.empty((40, *net["conv"].shape), np.float32)
    for _ in range(50):
        losses.add(loss_and_gradients(threads, params, x, labels, grads))
        threads.conv_forward(x, params.conv_w, params.conv_b, z)

losses = set()
workers = [threading.Thread(target=work) for _ in range(4)]
for worker in workers: worker.start()
for worker in workers: worker.join()
assert len(losses) == 1, losses
print("good")
"""


def test_any_number_of_threads_gives_the_same_bits_every_time_also_to_callers_at_once(layer):
    """Numba's workqueue layer kills a process that is in two parallel kernels at once."""
    assert run_on(layer, EVERY_NUMBER + AT_ONCE) == "good\n"
