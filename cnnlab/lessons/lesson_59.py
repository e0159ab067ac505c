"""The exercises of lesson 59."""

from math import inf

import numpy as np

from cnnlab.check import kinds

LIES = (
    "best of many", "bytes for time", "cut axis", "dropped failures", "extrapolation",
    "one seed", "part for the whole", "picked size", "time without accuracy",
    "virtual as real", "weak base", "weak for strong scaling",
)  # fmt: skip
ASKS = (
    "what does one rank take that needs no other?",
    "why does one train?",
    "how many images did each number of ranks have in a step?",
    "would you have shown the other batches?",
    "what does the reader want to have less of?",
    "who has so many cores?",
    "how often was it run?",
    "where does the axis begin?",
    "what else does a rank hold?",
    "which of these bars has anybody planned or run?",
)


def as_base(find) -> str:
    """What is wrong with a function that finds the fair base, in words; nothing if it is right."""
    rng = kinds.generator()
    for _ in range(kinds.FRESH):
        one = {(f"version {k}", 1): float(rng.uniform(2, 9)) for k in rng.permutation(4)}
        more = {(f"version {k}", 4): float(rng.uniform(0.5, 3)) for k in range(4)}
        seconds = dict(sorted({**one, **more}.items(), key=lambda _: rng.random()))
        right, got = min(one, key=one.get)[0], find(seconds)
        if got != right:
            return f"of {told(seconds)} the base is {right}, not {got!r}"
    if (got := find(more)) is not None:
        return f"of {told(more)} none ran on one rank: None, not {got!r}"
    return ""


def told(seconds: dict) -> str:
    """Seconds by version and ranks, in words."""
    return ", ".join(f"{name} on {n}: {t:.2g} s" for (name, n), t in seconds.items())


def as_times_faster(ratio) -> str:
    """What is wrong with a speedup in time to accuracy, in words; nothing if it is right."""
    rng = kinds.generator()
    for _ in range(kinds.FRESH):
        pair = [
            (
                float(rng.uniform(0.001, 0.01)),
                [(int(50 * k * rng.integers(1, 4)), float(a)) for k, a in enumerate(heights, 1)],
            )
            for heights in np.sort(rng.uniform(0.1, 0.95, (2, 5)))
        ]
        pair = [(seconds, sorted(curve)) for seconds, curve in pair]
        pair[0][1][-1] = pair[0][1][-1][0], 0.1  # a training can forget
        for target in (0.3, 0.6, 0.9):
            got, right = ratio(*pair, target), times_faster.model()(*pair, target)
            at = f"base {pair[0]}, other {pair[1]}, target {target}"
            if (got is None) != (right is None):
                return f"{at}: expected {right}, got {got}"
            if right is not None and not np.isclose(got, right):
                return f"{at}: expected {right:.4g}, got {got:.4g}"
    return ""


def as_scaling(judge) -> str:
    """What is wrong with a judge of scaling, in words; nothing if it is right."""
    rng = kinds.generator()
    for kind in ("strong", "weak", "neither") * 5:
        ranks = [int(rng.integers(1, 3))]
        ranks += [ranks[0] * factor for factor in (2, 4, 8)]
        each = 16 * int(rng.integers(1, 5))
        batches = {
            "strong": [each * ranks[-1]] * 4,
            "weak": [each * p for p in ranks],
            "neither": [each * p * p + each * (p > ranks[0]) for p in ranks],
        }[kind]
        runs = [
            (p, batch, batch / p * float(rng.uniform(1, 2)))
            for p, batch in zip(ranks, batches, strict=True)
        ]
        rng.shuffle(runs)
        runs = [(int(p), int(batch), float(seconds)) for p, batch, seconds in runs]
        word, efficiencies = judge(runs)
        if word != kind:
            return f"{runs}: the scaling is {kind}, not {word!r}"
        right = scaling.model()(runs)[1]
        if len(efficiencies) != 4 or not np.allclose(efficiencies, right):
            return f"{runs}: the efficiencies are {np.round(right, 3)}, not {efficiencies}"
    return ""


@kinds.labels(
    LIES,
    ASKS,
    "For each ask: compared with what, at which size, in which world, and what does it leave out?",
    "Each lie but two occurs once: one seed and dropped failures are not among the exhibits.",
)
def lies():
    """No number was invented."""
    return [
        "weak base",
        "time without accuracy",
        "weak for strong scaling",
        "picked size",
        "bytes for time",
        "virtual as real",
        "best of many",
        "cut axis",
        "part for the whole",
        "extrapolation",
    ]


@kinds.tested(
    as_base,
    "Which of them ran on one rank?",
    "Of these, the smallest of seconds; None where there are none.",
)
def base(seconds):
    """A speedup over anything slower than the fastest one-rank version flatters."""
    alone = {name: t for (name, n_ranks), t in seconds.items() if n_ranks == 1}
    return min(alone, key=alone.get) if alone else None


@kinds.tested(
    as_times_faster,
    "How many steps does each need until an accuracy of at least the target is seen?",
    "Time is steps times seconds a step; None if one of them never gets there.",
)
def times_faster(base, other, target):
    """What counts is the product of steps and their time; without an end there is no ratio."""
    times = []
    for seconds, curve in (base, other):
        times.append(seconds * next((n for n, accuracy in curve if accuracy >= target), inf))
    return None if inf in times else times[0] / times[1]


@kinds.tested(
    as_scaling,
    "Strong: what stays the same in all runs? Weak: what stays the same for each rank?",
    "Efficiency compares images a second for each rank with the run that has the fewest ranks.",
)
def scaling(runs):
    """Images a second for each rank, over those of the smallest run, serve for both kinds."""
    batches = {batch for _, batch, _ in runs}
    shares = {batch / n_ranks for n_ranks, batch, _ in runs}
    word = "strong" if len(batches) == 1 else "weak" if len(shares) == 1 else "neither"
    rates = [batch / seconds / n_ranks for n_ranks, batch, seconds in runs]
    smallest = min(range(len(runs)), key=lambda k: runs[k][0])
    return word, [rate / rates[smallest] for rate in rates]
