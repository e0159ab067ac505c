"""What every search promises, tried with scores that are drawn: the proof of a method."""

from collections.abc import Callable

import numpy as np

from cnnlab.check.verdict import Verdict

AT_ONCE = 5  # trials that are out at the same time


def promises(make: Callable[[], object]) -> Verdict:
    """Whether a search keeps what `cnnlab.training.search.Search` promises, in words.

    `make()` makes it anew, the same each time. Its trials are numbered in order, they go on only
    from trials that were told, and no more come than the budget allows; an ask in vain changes
    nothing; and the same asks and tells bring the same trials.
    """
    first = played(make(), in_vain=0)
    name = type(make()).__name__
    if isinstance(first, str):
        return Verdict(False, f"{name}: {first}")
    others = [played(make(), in_vain=n) for n in (0, 3)]
    if others[0] != first:
        return Verdict(False, f"{name}: the same asks and tells brought other trials")
    if others[1] != first:
        return Verdict(False, f"{name}: an ask that returned None changed what came later")
    return Verdict(True, f"{name}: {len(first)} trials, told out of order, as promised")


def played(search, in_vain: int) -> list | str:
    """The trials of a search with several out at once, or what is wrong with one, in words."""
    rng, trials, out, told, spent = np.random.default_rng(0), [], [], set(), 0
    while True:
        while len(out) < AT_ONCE and (trial := search.ask()):
            if spent >= search.budget:
                return f"{spent} epochs of {search.budget} were handed out, and then more"
            if trial.number != len(trials):
                return f"expected trial number {len(trials)}, got {trial.number}"
            if trial.parent is not None and trial.parent not in told:
                return f"trial {trial.number} goes on from {trial.parent}, which was not told"
            spent += trial.epochs
            trials.append(trial)
            out.append(trial)
        if len(out) < AT_ONCE:
            for _ in range(in_vain):
                if search.ask() is not None:
                    return "an ask brought a trial right after one that brought none"
        if not out:
            enough = spent >= search.budget
            return trials if enough else f"it ended after {spent} of {search.budget} epochs"
        trial = out.pop(int(rng.integers(len(out))))
        search.tell(trial, float(rng.random()))
        told.add(trial.number)
