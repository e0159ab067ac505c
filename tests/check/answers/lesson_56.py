"""Answers to the exercises of lesson 56, right and wrong."""

import numpy as np

from cnnlab.lessons.lesson_56 import (
    bfloat16,
    by_chance,
    feedback,
    message_bytes,
    pays_below,
    unpack,
)


def compared(values, chances):
    below = np.floor(values)
    return below + (chances < values - below)


def towards_zero(values, chances):
    return np.trunc(values + chances)


def half_the_time(values, chances):
    return np.where(chances < 0.5, np.floor(values), np.ceil(values))


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


def unpacked(packed, bits):
    shifts = np.arange(0, 8, bits, dtype=np.uint8)[:, None]
    return ((packed >> shifts) & np.uint8(2**bits - 1)).reshape(-1)


def neighbours(packed, bits):
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return ((packed[:, None] >> shifts) & np.uint8(2**bits - 1)).reshape(-1)


def unmasked(packed, bits):
    return np.concatenate([packed >> shift for shift in range(0, 8, bits)])


def highest_first(packed, bits):
    rows = [(packed >> shift) & (2**bits - 1) for shift in range(0, 8, bits)]
    return np.concatenate(rows[::-1])


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


RIGHT = [
    (message_bytes, lambda n, bits, bucket: 4 * np.ceil(n / bucket) + np.ceil(n * bits / 8)),
    (by_chance, compared),
    (unpack, unpacked),
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
    (message_bytes, lambda n, bits, bucket: n * bits / 8, "too small"),
    (message_bytes, lambda n, bits, bucket: 4 * n / bucket + n * bits / 8, "message bytes("),
    (by_chance, lambda values, chances: np.rint(values), "the same"),
    (by_chance, towards_zero, "levels are"),
    (by_chance, half_the_time, "arrives"),
    (by_chance, lambda values, chances: values, "whole numbers"),
    (unpack, neighbours, "not neighbours"),
    (unpack, unmasked, "mask them"),
    (unpack, highest_first, "code"),
    (unpack, lambda packed, bits: packed, "expected"),
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
]
