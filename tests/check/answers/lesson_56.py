"""Answers to the exercises of lesson 56, right and wrong."""

import numpy as np

from cnnlab.lessons.lesson_56 import bfloat16, challenge_vote, feedback, five_in_a_byte, pays_below


def fed_back(g, residual, quantise):
    sent = quantise(g + residual)
    residual[:] = g + residual - sent
    return sent


def added_after(g, residual, quantise):
    sent = quantise(g) + residual
    residual[:] = g - quantise(g)
    return sent


def added_after_once(g, residual, quantise):
    sent = quantise(g)
    residual += g - sent
    return sent


def old_one_lost(g, residual, quantise):
    sent = quantise(g + residual)
    residual[:] = g - sent
    return sent


def wrong_sign(g, residual, quantise):
    sent = quantise(g + residual)
    residual[:] = sent - g - residual
    return sent


def not_in_place(g, residual, quantise):
    sent = quantise(g + residual)
    residual = g + residual - sent
    return sent


def spoils_g(g, residual, quantise):
    g += residual
    sent = quantise(g)
    residual[:] = g - sent
    return sent


def decayed(g, residual, quantise):
    sent = quantise(g + residual)
    residual[:] = 0.9 * (g + residual - sent)
    return sent


def upper_half(bits):
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)


def cut_off(values, chances):
    return upper_half(values.view(np.uint32))


def a_bit_too_many(values, chances):
    return upper_half(values.view(np.uint32) + 2 * chances)


def as_bits(values, chances):
    return (values.view(np.uint32) + chances) & np.uint32(0xFFFF0000)


def not_cut(values, chances):
    return (values.view(np.uint32) + chances).view(np.float32)


def half_the_time(values, chances):
    return upper_half(values.view(np.uint32) + np.where(chances < 2**15, np.uint32(65535), 0))


def shared(comm, values):
    received = np.empty((comm.size, values.size // 8), np.uint8)
    comm.Allgather(np.packbits(values < 0), received)
    return np.unpackbits(received, axis=1).sum(axis=0)


def summed(comm, values):
    total = np.empty_like(values)
    comm.Allreduce(values, total)
    return np.where(total < 0, -1, 1)


def at_a_master(comm, values):
    rows, won = comm.gather(np.packbits(values < 0), root=0), None
    if comm.rank == 0:
        won = np.packbits(2 * np.unpackbits(np.array(rows), axis=1).sum(axis=0) > comm.size)
    return 1 - 2 * np.unpackbits(comm.bcast(won, root=0)).astype(int)


RIGHT = [
    (five_in_a_byte, lambda c: np.sum(c * np.uint8([1, 3, 9, 27, 81]), axis=1, dtype=np.uint8)),
    (challenge_vote, at_a_master),
    (feedback, fed_back),
    (
        pays_below,
        lambda bits, encode, decode, n_ranks: (
            (n_ranks - 1) * (1 - bits / 32) / ((n_ranks + 1) / (2 * encode) + n_ranks / decode)
        ),
    ),
    (bfloat16, lambda values, chances: upper_half(values.view(np.uint32) + chances)),
]
WRONG = [
    (five_in_a_byte, lambda c: (c @ 4 ** np.arange(5)).astype(np.uint8), "expected"),
    (five_in_a_byte, lambda c: (c @ 3 ** np.arange(5)[::-1]).astype(np.uint8), "lowest digit"),
    (five_in_a_byte, lambda codes: codes @ (3 ** np.arange(5)), "expected uint8"),
    (five_in_a_byte, lambda codes: codes.sum(axis=1).astype(np.uint8), "expected"),
    (
        challenge_vote,
        lambda comm, v: summed(comm, np.where(v < 0, -1, 1).astype(v.dtype)),
        "a rank sends",
    ),
    (challenge_vote, summed, "expected"),
    (challenge_vote, lambda comm, v: np.where(v < 0, -1, 1), "expected"),
    (
        challenge_vote,
        lambda comm, v: np.where(2 * shared(comm, v) >= comm.size, -1, 1),
        "2 of 4 are negative",
    ),
    (challenge_vote, shared, "1 or −1"),
    (feedback, added_after, "one call"),
    (feedback, added_after_once, "add it before"),
    (feedback, old_one_lost, "is lost"),
    (feedback, wrong_sign, "wrong sign"),
    (feedback, not_in_place, "in place"),
    (feedback, spoils_g, "g is changed"),
    (feedback, decayed, "not what was not sent"),
    (feedback, lambda g, residual, quantise: quantise(g), "in place"),
    (pays_below, lambda bits, encode, decode, n_ranks: encode, "pays below("),
    (
        pays_below,
        lambda bits, encode, decode, n_ranks: (1 - bits / 32) / (1 / encode + 1 / decode),
        "pays below(",
    ),
    (bfloat16, cut_off, "the same"),
    (bfloat16, a_bit_too_many, "bfloat16"),
    (bfloat16, as_bits, "expected float32"),
    (bfloat16, not_cut, "lower 16 bits"),
    (bfloat16, half_the_time, "arrives"),
]
