"""Answers to the exercises of lesson 22, right and wrong."""

import numpy as np

from cnnlab.lessons.lesson_22 import accumulate, challenge, drift


def added_up_each_time(comm, replica, chosen, rate, most):
    share = np.array_split(chosen, comm.size)[comm.rank]
    grads, total = np.zeros((2, replica.grads.flat.size))
    for k in range(-(-len(chosen) // most)):
        replica.gradients(share[k * most : (k + 1) * most])
        comm.Allreduce(replica.grads.flat.copy(), grads)
        total += grads
    replica.params.flat -= rate / len(chosen) * total


def by_pieces(at_once=lambda most: most, keep=True, images=lambda chosen, mine: len(chosen)):
    def step(comm, replica, chosen, rate, most):
        share = np.array_split(chosen, comm.size)[comm.rank]
        mine, most = np.zeros_like(replica.grads.flat), at_once(most)
        for first in range(0, len(share), most):
            replica.gradients(share[first : first + most])
            mine = mine * keep + replica.grads.flat
        total = np.empty_like(mine)
        comm.Allreduce(mine, total)
        replica.params.flat -= rate / images(chosen, share) * total

    return step


def leaves_early(comm, replica, chosen, rate, most):
    if len(np.array_split(chosen, comm.size)[comm.rank]):
        by_pieces()(comm, replica, chosen, rate, most)


def greedy(seconds, sizes, alpha, beta):
    buckets, free, ready, n = [], 0.0, np.cumsum(seconds), 0
    for k in range(len(sizes)):
        n += 1
        if ready[k] >= free or k == len(sizes) - 1:
            free = max(free, ready[k]) + alpha + beta * sum(sizes[k + 1 - n : k + 1])
            buckets, n = [*buckets, n], 0
    return buckets


RIGHT = [
    (accumulate, accumulate.model()),
    (accumulate, by_pieces()),
    (drift, drift.model()),
    (challenge, challenge.model()),
]
WRONG = [
    (accumulate, added_up_each_time, "where one allreduce sends"),
    (accumulate, by_pieces(at_once=lambda most: 99), "where 3 have room"),
    (accumulate, by_pieces(keep=False), "not the parameters of one rank"),
    (accumulate, by_pieces(images=lambda chosen, mine: max(1, len(mine))), "12 images on 2 ranks"),
    (accumulate, leaves_early, "rank"),
    (drift, ["no allreduce", "another start", "another order", "the same share"], "2 of 4 right"),
    (challenge, lambda seconds, sizes, alpha, beta: [1] * len(sizes), "the best buckets"),
    (challenge, lambda seconds, sizes, alpha, beta: [len(sizes)], "the best buckets"),
    (challenge, lambda seconds, sizes, alpha, beta: [1], "expected buckets"),
    (challenge, greedy, "the best buckets"),
]
