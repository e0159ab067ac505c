"""The exercises of lesson 56."""

import numpy as np

from cnnlab.check.chance import tried, unbiased
from cnnlab.check.exercises import kinds

N_MESSAGES = 2000


def as_rounding(rounding) -> str:
    """What is wrong with a rounding to whole numbers by chance, in words; nothing if right."""
    values = np.array([0.2, 0.5, 0.9, -0.2, -0.9, 3.0, -4.0, 0.0, -2.7, 11.1], np.float32)
    once = np.asarray(rounding(values.copy(), np.full(values.shape, 0.5)))
    if once.shape != values.shape:
        return f"expected shape {values.shape}, got {once.shape}"
    found = tried(rounding, values, N_MESSAGES)
    if (found != np.round(found)).any():
        return f"expected whole numbers, got {found[found != np.round(found)][0]:.6g}"
    if (found == found[0]).all():
        return "all messages are the same: chances do not count"
    verdict = unbiased("rounding", found, values, 1.0)
    return "" if verdict else verdict.text


def as_feedback(step) -> str:
    """What is wrong with a step of error feedback, in words; nothing if it is right."""
    rng = np.random.default_rng()
    residual, given, arrived = np.zeros(8), np.zeros(8), np.zeros(8)
    for _ in range(50):
        g = rng.normal(size=8) + 0.2
        kept, before = g.copy(), residual.copy()
        quantised = []

        def quantise(x, quantised=quantised):
            quantised.append(np.array(x))
            return np.where(np.asarray(x) < 0, -1.0, 1.0)

        sent = step(g, residual, quantise)
        if not np.array_equal(g, kept):
            return "g is changed, and should be left as it is"
        if len(quantised) != 1:
            return f"quantise: expected one call, got {len(quantised)}"
        given, arrived = given + g, arrived + np.asarray(sent)
        if wrong := of_feedback(g, before, residual, quantised[0], np.asarray(sent)):
            return wrong
    if not np.allclose(arrived + residual, given):
        return "what has arrived and the residual do not add up to what was given"
    return ""


def of_feedback(g, before, after, quantised, sent) -> str:
    """What is wrong with one step: what was quantised and kept."""
    if np.allclose(quantised, g) and before.any():
        return "g is quantised without the residual: add it before, not after"
    if not np.allclose(quantised, g + before):
        return "expected g + residual to be quantised"
    if not np.allclose(sent, np.where(quantised < 0, -1.0, 1.0)):
        return "expected what quantise returned to be sent"
    if np.array_equal(after, before):
        return "the residual has not changed: change it in place"
    if np.allclose(after, g - sent) and before.any():
        return "the old residual is lost: keep g + residual - sent"
    if np.allclose(after, sent - quantised):
        return "the residual has the wrong sign"
    return "" if np.allclose(after, quantised - sent) else "the residual is not what was not sent"


def as_unpack(unpack) -> str:
    """What is wrong with unpacking codes, in words; nothing if it is right."""
    for bits in (4, 2, 1, 8):
        m, mask = 5, 2**bits - 1
        packed = np.random.default_rng().integers(0, 256, m).astype(np.uint8)
        rows = [(packed.astype(int) >> k * bits) & mask for k in range(8 // bits)]
        got = np.asarray(unpack(packed.copy(), bits))
        if got.shape != (m * 8 // bits,):
            return f"bits={bits}: expected {m * 8 // bits} codes, got shape {got.shape}"
        if np.array_equal(got, np.concatenate(rows)):
            continue
        if np.array_equal(got, np.stack(rows, 1).reshape(-1)):
            return f"bits={bits}: codes of a byte are not neighbours: byte i has i, i + m, …"
        if (got > mask).any():
            return f"bits={bits}: expected codes up to {mask}, got {got.max()}: mask them"
        k = int(np.argmax(got != np.concatenate(rows)))
        return f"bits={bits}: code {k}: expected {np.concatenate(rows)[k]}, got {got[k]}"
    return ""


def as_bfloat16(rounding) -> str:
    """What is wrong with a rounding to bfloat16 by chance, in words; nothing if it is right."""
    rng = np.random.default_rng()
    values = np.append(rng.normal(size=12), [0.0, 1.0, -1.0, 1e-3, 1 + 2**-9]).astype(np.float32)
    rows = []
    for _ in range(N_MESSAGES):
        chances = rng.integers(0, 1 << 16, values.shape).astype(np.uint32)
        got = np.asarray(rounding(values.copy(), chances))
        if got.dtype != np.float32:
            return f"expected float32, got {got.dtype}: view the bits as numbers again"
        rows.append(got)
    found = np.array(rows)
    if (found.view(np.uint32) & np.uint32(0xFFFF)).any():
        return "the lower 16 bits are not all zero: no bfloat16"
    if (found == found[0]).all():
        return "all messages are the same: chances do not count"
    unit = 2.0 ** (np.floor(np.log2(np.maximum(abs(values), 2.0**-126))) - 7)
    verdict = unbiased("bfloat16", found, values, unit)
    return "" if verdict else verdict.text


@kinds.formula(
    lambda rng: {
        "n": int(rng.integers(1, 100_000)),
        "bits": int(rng.choice([1, 2, 4, 8])),
        "bucket": int(rng.choice([64, 512, 4096])),
    },
    "Buckets come in whole numbers, and so do bytes.",
    "4 bytes for each scale; then n · bits, over 8, rounded up.",
)
def message_bytes(n, bits, bucket):
    """A scale for each bucket, the last of which may be short, and then the packed codes."""
    return 4 * -(-n // bucket) + -(-n * bits // 8)


@kinds.tested(
    as_rounding,
    "A value of 0.3 should become 1 for three chances in ten: those from 0.7 on, say.",
    "floor rounds down also below zero; what does it make of value + chance?",
)
def by_chance(values, chances):
    """value + chance passes the next whole number as often as value is near it."""
    return np.floor(values + chances)


@kinds.tested(
    as_unpack,
    "Shift by 0, bits, 2 · bits, …, and mask: one row of codes for each shift.",
    "The first m codes are the lowest bits of the m bytes, the next m those above.",
    tells=True,
)
def unpack(packed, bits):
    """A row of codes for each shift; the rows one after the other."""
    rows = [(packed >> shift) & (2**bits - 1) for shift in range(0, 8, bits)]
    return np.concatenate(rows)


@kinds.tested(
    as_feedback,
    "Three lines: add, quantise, subtract.",
    "residual += g; what is quantised then is the residual itself, before anything is taken off.",
)
def feedback(g, residual, quantise):
    """All that was ever given has either been sent, or waits in the residual."""
    residual += g
    sent = quantise(residual)
    residual -= sent
    return sent


@kinds.formula(
    lambda rng: {
        "bits": int(rng.choice([1, 2, 4, 8, 16])),
        "encode": float(rng.uniform(0.1, 10) * 1e9),
        "decode": float(rng.uniform(0.1, 30) * 1e9),
        "n_ranks": int(rng.integers(2, 65)),
    },
    "Count for one number of a shard: bytes saved by 2 (P − 1) messages, seconds of work more.",
    "Saved: 2 (P − 1) (4 − bits / 8). Work: P + 1 encodings and 2 P decodings of 4 bytes each.",
)
def pays_below(bits, encode, decode, n_ranks):
    """The bytes that are saved, over the seconds that this takes; n cancels out."""
    saved = 2 * (n_ranks - 1) * (4 - bits / 8)
    return saved / (4 * (n_ranks + 1) / encode + 4 * 2 * n_ranks / decode)


@kinds.tested(
    as_bfloat16,
    "bfloat16 is the upper half of a float32: view(np.uint32) shows all 32 bits.",
    "Add a chance of 16 bits to the bits, and the carry rounds up as often as it should.",
)
def bfloat16(values, chances):
    """The carry out of the lower half is the rounding; it works for both signs."""
    bits = values.view(np.uint32) + chances
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)
