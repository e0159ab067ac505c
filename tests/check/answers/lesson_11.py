"""Answers to the exercises of lesson 11, right and wrong."""

import inspect

import numba
import numpy as np

from cnnlab.lessons.lesson_11 import maximum, mended


def until_nobody_else_is_faster(load, compare_and_swap, value):
    while (old := load()) < value:
        if compare_and_swap(old, value) == old:
            break


def always_swaps(load, compare_and_swap, value):
    old = load()
    while True:
        seen = compare_and_swap(old, max(old, value))
        if seen == old:
            return
        old = seen


def tries_once(load, compare_and_swap, value):
    old = load()
    if old < value:
        compare_and_swap(old, value)


def looks_once(load, compare_and_swap, value):
    """Once it has begun, it swaps even where the value is no longer the larger."""
    if load() < value:
        while (old := load()) != value:
            compare_and_swap(old, value)


def never_looks_again(load, compare_and_swap, value):
    old = load()
    while old < value and compare_and_swap(old, value) != old:
        pass


def adding_to(row):
    """The model answer, but images and filters add to partial[`row`, f]."""
    source, names = inspect.getsource(mended.model().py_func), {"np": np, "numba": numba}
    kernel = source[source.index("@numba.njit") :]
    exec(kernel.replace("partial[n, f] +=", f"partial[{row}, f] +="), names)
    return names["mended"]


@numba.njit(parallel=True)
def an_image_a_task(dz, db):
    N, F = dz.shape[:2]
    partial = np.zeros((N, F), dz.dtype)
    for n in numba.prange(N):
        for f in range(F):
            partial[n, f] = dz[n, f].sum()
    for f in range(F):
        db[f] = partial[:, f].sum()


@numba.njit
def on_one_thread(dz, db):
    N, F = dz.shape[:2]
    for f in range(F):
        db[f] = 0
        for n in range(N):
            db[f] += dz[n, f].sum()


RIGHT = [
    (maximum, until_nobody_else_is_faster),
    (maximum, always_swaps),
    (mended, adding_to("n")),
    (mended, an_image_a_task),
]
WRONG = [
    (maximum, tries_once, "others store [4] meanwhile"),
    (maximum, looks_once, "it ends as 5"),
    (maximum, never_looks_again, "it never ends"),
    (maximum, lambda load, compare_and_swap, value: max(load(), value), "it ends as 3"),
    (mended, adding_to("i // F"), "iterations 0 and 1"),
    (mended, adding_to("n // F"), "iterations 0 and 1"),
    (mended, on_one_thread, "not parallel"),
]
