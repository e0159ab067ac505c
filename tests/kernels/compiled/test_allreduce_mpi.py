"""MPI from compiled kernels. Of several ranks, see test_job."""

import ctypes

import numba
import numpy as np
import pytest
from mpi4py import MPI

from cnnlab.kernels import allreduce
from cnnlab.kernels.allreduce import sum_by_mpi


def test_the_sum_over_one_rank_is_what_it_had():
    grads = np.arange(5, dtype=np.float32)
    total = sum_by_mpi(grads, allreduce.messages(MPI.COMM_SELF))
    assert np.shares_memory(total, grads) and (total == np.arange(5)).all()


def test_without_ranks_there_is_nothing_to_add_up():
    grads = np.arange(4, dtype=np.float32)
    assert (sum_by_mpi(grads, None) == np.arange(4)).all()


def test_what_mpi_is_told():
    """A function that takes the place of MPI_Allreduce notes its arguments."""
    seen, kind = [], ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_ssize_t] * 6)
    function = kind(lambda *arguments: seen.append(arguments) or 0)
    result = allreduce.messages(MPI.COMM_SELF)
    address = ctypes.cast(function, ctypes.c_void_p).value
    grads = np.zeros(7, np.float32)
    sum_by_mpi(grads, result._replace(function=address))
    handles = [MPI._handleof(item) for item in (MPI.FLOAT, MPI.SUM, MPI.COMM_SELF)]
    assert seen == [(int(MPI.IN_PLACE), grads.ctypes.data, 7, *handles)]


def test_a_message_that_fails_is_an_error():
    nobody = allreduce.messages(MPI.COMM_SELF)._replace(communicator=MPI._handleof(MPI.COMM_NULL))
    with pytest.raises(RuntimeError, match="MPI_Allreduce: the gradients could not be added up"):
        sum_by_mpi(np.zeros(5, np.float32), nobody)


def test_a_function_is_called_by_its_address():
    @numba.njit
    def both(address, number, text):
        return allreduce.call(address, (number,)), allreduce.call(address, (text.ctypes.data,))

    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_ssize_t)
    seen = []
    function = kind(lambda word: seen.append(word) or 7)
    text = np.zeros(3, np.uint8)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert both(address, -5, text) == (7, 7) and seen == [-5, text.ctypes.data]
