"""The exercises of lesson 58."""

import numpy as np

from cnnlab.check import kinds

SIZES, DRAWS = (10, 15, 20), 80


def as_exploit(answer) -> str:
    """What is wrong with a choice of whom to copy, in words; nothing if it is right."""
    rng = kinds.generator()
    for size in SIZES:
        scores = rng.permutation(size) / size
        order, few = np.argsort(scores), size // 5
        worst, best = set(order[:few].tolist()), set(order[-few:].tolist())
        for me in range(size):
            given = scores.copy()
            copied = {int(answer(given, me, rng)) for _ in range(DRAWS)}
            if not np.array_equal(given, scores):
                return "the scores are changed, and should be left as they are"
            if me in worst:
                if copied & worst:
                    return f"of {size}, number {me} copies one of the worst fifth"
                if copied != best:
                    return f"of {size}, number {me} copies {len(copied)} of them: any of the "\
                           f"{few} in the best fifth"  # fmt: skip
            elif copied != {me}:
                return f"of {size}, number {me} copies another, and is not among the worst fifth"
    return ""


def promotions(told, promoted, eta, *, lowest=False, again=False, up=False, worst=False):
    """Whom to promote: right, or with one of the usual mistakes."""
    rungs = range(len(told) - 1)
    for k in rungs if lowest else reversed(rungs):
        ranked = sorted(told[k], key=told[k].get, reverse=not worst)
        few = -(-len(ranked) // eta) if up else len(ranked) // eta
        for trial in ranked[:few]:
            if again or trial not in promoted:
                return k, trial
    return None


MISTAKES = {
    "begins at the lowest rung, and not at the highest": {"lowest": True},
    "promotes one that was promoted already": {"again": True},
    "rounds 1/η of a rung up, and not down": {"up": True},
    "promotes the worst": {"worst": True},
}


def board(rng) -> tuple[list[dict], set, int]:
    """Rungs with scores, some promoted already, and η."""
    eta, number, told, promoted = int(rng.integers(2, 5)), 0, [], set()
    for n in sorted(rng.integers(0, 14, 3), reverse=True):
        trials = range(number, number + int(n))
        told.append({trial: float(rng.random()) for trial in trials})
        few = sorted(told[-1], key=told[-1].get, reverse=True)[: int(n) // eta]
        promoted |= set(few[: int(rng.integers(0, len(few) + 1))])
        number += int(n)
    return told, promoted, eta


def as_promotion(answer) -> str:
    """What is wrong with a promotion, in words; nothing if it is right."""
    rng = kinds.generator()
    boards = [board(rng) for _ in range(300)]
    for told, promoted, eta in boards:
        before = [dict(rung) for rung in told], set(promoted)
        got = answer(told, promoted, eta)
        if (told, promoted) != before:
            return "told or promoted is changed, and should be left as it is"
        if got != promotions(told, promoted, eta):
            return f"{mistake_of(answer, boards)}: expected {promotions(told, promoted, eta)}, "\
                   f"got {got}, told {told}, promoted {promoted}, η {eta}"  # fmt: skip
    return ""


def mistake_of(answer, boards) -> str:
    """Which mistake gives what an answer gives, on all boards."""
    for words, how in MISTAKES.items():
        if all(answer(*given) == promotions(*given, **how) for given in boards):
            return f"it {words}"
    return "it differs"


@kinds.number(
    "What is the probability that n draws all miss the best twentieth?",
    "0.95ⁿ must be at most 0.05. Round n up.",
)
def draws():
    """0.95⁵⁹ is just below 0.05, however many hyperparameters there are."""
    from math import ceil, log

    return ceil(log(0.05) / log(0.95))


@kinds.formula(
    lambda rng: {
        "n": int(rng.integers(1, 400)),
        "first": int(rng.integers(1, 4)),
        "eta": int(rng.integers(2, 5)),
        "rungs": int(rng.integers(1, 5)),
    },
    "n // eta of them go on to the second rung. How many epochs have they had by then?",
    "From a rung to the next it takes the difference, for a promoted trial goes on.",
)
def epochs(n, first, eta, rungs):
    """Each further rung costs at most (η − 1) / η of the first, since η times fewer are on it."""
    total = n * first
    for _ in range(rungs - 1):
        n, total = n // eta, total + n // eta * (eta - 1) * first
        first *= eta
    return total


@kinds.tested(
    as_exploit,
    "np.argsort(scores) has the numbers of the worst first. How many are a fifth?",
    "rng.choice(order[-few:]) draws one of the best.",
)
def exploit(scores, me, rng):
    """A fifth that is drawn from, and not the one best: several go on."""
    order, few = np.argsort(scores), len(scores) // 5
    return rng.choice(order[-few:]) if me in order[:few] else me


@kinds.tested(
    as_promotion,
    "Rank each rung but the last; len // eta of it may go on, if they have not yet.",
    "reversed(range(len(told) - 1)) begins with the highest rung that has one above it.",
)
def promote(told, promoted, eta):
    """The highest first: what is nearly trained is finished, before more is begun."""
    for k in reversed(range(len(told) - 1)):
        ranked = sorted(told[k], key=told[k].get, reverse=True)
        for trial in ranked[: len(ranked) // eta]:
            if trial not in promoted:
                return k, trial
    return None
