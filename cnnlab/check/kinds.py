"""The kinds of exercises. Each is a decorator, and the function below it is the model answer.

`make render` folds the function's body away at the end of the lesson, with its docstring, which
says why; a right answer is told the docstring, too. Nobody else keeps an answer or a number.
"""

import contextlib
import dis
import functools
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cnnlab import cuda
from cnnlab.check import device, operation
from cnnlab.check.answer import judge
from cnnlab.check.inputs import case, draw, fresh_cases, generator
from cnnlab.check.verdict import Verdict, number_verdict

TRIES: Counter[str] = Counter()  # wrong ones in this session, by exercise
FRESH = 60  # draws that a formula is tried on
SMALL = case("small enough for a picture", 2, 1, 2, 8, 8, 3, D=20, O=5)


@dataclass(frozen=True)
class Exercise:
    """An exercise: called with an answer, it prints the verdict and returns whether it is right.

    ... and None, and functions whose body is no more, are not yet answers. A wrong answer gets the
    next hint. Nothing goes to standard error: nbgrader gives such a check no points.
    """

    name: str
    verdict: Callable[[object], Verdict]
    hints: tuple[str, ...]
    why: str
    model: Callable[[], object]  # makes the model answer, as a learner would hand it in
    traces: Callable[[object], list] | None = None  # of an answer in CUDA C, for a picture of it

    def __call__(self, answer) -> bool:
        return self.judge(answer).report()

    def grade(self, answer, seed: int) -> None:
        """Print the verdict on other cases than the usual ones: they follow from `seed`.

        Raises AssertionError if the answer is wrong, or not yet given.
        """
        with fresh_cases(seed):
            self.judge(answer).require()

    def judge(self, answer) -> Verdict:
        """The verdict, and in its text the reason of a right answer or a hint for a wrong one."""
        if empty(answer):
            return Verdict(False, f"{self.name}: not yet answered")
        with contextlib.redirect_stderr(sys.stdout):
            verdict = self.verdict(answer)
        if verdict:
            TRIES.pop(self.name, None)
            why = f"\n  {self.why}" if self.why else ""
            return replace(verdict, text=f"{verdict.text}{why}")
        TRIES[self.name] += 1
        hint = self.hints[min(TRIES[self.name], len(self.hints)) - 1]
        return replace(verdict, text=f"{verdict.text}\n  Hint: {hint}")


def number(*hints: str, rtol: float = 1e-6) -> Callable[[Callable], Exercise]:
    """A number, which may differ by `rtol` times the one that the model answer returns."""
    return _kind(hints, lambda model, name, got: number_verdict(name, got, model(), rtol))


def choice(among: Sequence[str], *hints: str) -> Callable[[Callable], Exercise]:
    """One of the words in `among`; or several of them, in the order of the model answer."""

    def verdict(model, name, got) -> Verdict:
        words = [got] if isinstance(got, str) else [str(word) for word in np.ravel(got)]
        expected = [model()] if isinstance(model(), str) else list(model())
        if len(words) != len(expected) or not {*words} <= {*among}:
            wanted = f"{len(expected)} of " if len(expected) > 1 else "one of "
            return Verdict(False, f"{name}: expected {wanted}{', '.join(among)}, got {got!r}")
        return Verdict(words == expected, f"{name}: {', '.join(words)}")

    return _kind(hints, verdict)


def labels(among: Sequence[str], asks: Sequence[str], *hints: str):
    """A list with a word of `among` for each of several things; ... leaves one open.

    `asks` has a question for each of them: that of the first wrong one is asked.
    """

    def verdict(model, name, got) -> Verdict:
        words, expected = list(got), model()
        wrong = [k for k, word in enumerate(words) if word is not ... and word not in among]
        if len(words) != len(expected) or wrong:
            what = f"{len(expected)} of {', '.join(among)}"
            return Verdict(False, f"{name}: expected {what}, got {words}")
        right = [word == local for word, local in zip(words, expected, strict=True)]
        text = f"{name}: {sum(right)} of {len(right)} right"
        for k, word in enumerate(words):
            if word is not ... and not right[k]:
                return Verdict(False, f"{text}; {k + 1} is not {word}: {asks[k]}")
        return Verdict(all(right), text)

    return _kind(hints, verdict)


def formula(draw: Callable[[np.random.Generator], dict], *hints: str, rtol: float = 1e-6):
    """A function of numbers, tried on fresh ones: `draw` makes its arguments, by name."""

    def verdict(model, name, got) -> Verdict:
        if not callable(got):
            text = f"{name}: expected a function of {', '.join(draw(generator()))}"
            return Verdict(False, f"{text}, got {got!r}")
        for _ in range(FRESH):
            numbers = draw(generator())
            at = f"{name}({', '.join(f'{key}={value:.6g}' for key, value in numbers.items())})"
            try:
                result = number_verdict(at, got(**numbers), model(**numbers), rtol)
            except Exception as error:  # an answer may fail in any way: the verdict says how
                result = Verdict(False, f"{at}: raised {type(error).__name__}: {error}")
            if not result:
                return result
        return Verdict(True, f"{name}: right for {FRESH} draws of fresh numbers")

    return _kind(hints, verdict, own=lambda model: model)


def kernel(op: str, *hints: str, by: Callable[..., Verdict] = operation.kernel, **options):
    """A kernel for an operation of the contract, that of no strategy.

    `by(…, **options)` gives the verdict, such as `operation.kernel` or `threads.kernel`.
    """
    return _kind(hints, lambda _, name, got: judge(op, got, by, options), own=lambda model: model)


def tested(test: Callable[[object], str], *hints: str):
    """A function that `test` tries: it returns what is wrong, in words, or nothing."""

    def verdict(model, name, got) -> Verdict:
        try:
            wrong = test(got)
        except Exception as error:  # see above
            wrong = f"raised {type(error).__name__}: {error}"
        return Verdict(not wrong, f"{name}: {wrong or 'right'}")

    return _kind(hints, verdict, own=lambda model: model)


def cuda_c(
    op: str,
    launch: Callable,
    *hints: str,
    by: Callable[..., Verdict] = device.kernel,
    **options,
) -> Callable[[Callable], Exercise]:
    """A kernel in CUDA C: the model answer returns its source, a learner hands in `cuda.Kernels`.

    `launch(kernels, *arrays)` launches it as the operation `op`; `by` gives the verdict, and
    `options` go to it. `exercise.traces(kernels)` are those of a launch on small arrays.
    """

    def verdict(model, name, got) -> Verdict:
        if not hasattr(got, "launch"):
            return Verdict(False, f"{name}: expected the kernels of %%cuda, got {got!r}")
        return by(op, lambda *given: launch(got, *given), **options)

    def traces(got) -> list:
        with cuda.traced() as result, contextlib.suppress(RuntimeError):  # a fault is in its trace
            launch(got, *draw(op, SMALL).values())
        return result

    def decorate(model) -> Exercise:
        exercise = _kind(hints, verdict, own=lambda m: cuda.Kernels(m()))(model)
        return replace(exercise, traces=traces)

    return decorate


def empty(answer) -> bool:
    """Whether an answer is still to be given: ..., None, a list of these, or so is a function."""
    if isinstance(answer, list) and answer:
        return all(map(empty, answer))
    function = getattr(answer, "py_func", answer)
    if not inspect.isfunction(function):
        return answer is None or answer is ...
    steps = [i for i in dis.get_instructions(function) if i.opname not in ("RESUME", "NOP")]
    return steps[0].argval is None and len(steps) <= 2 and "CONST" in steps[0].opname


def _kind(hints: tuple, verdict: Callable, own: Callable = lambda model: model()):
    """The decorator of a kind of exercise, from the function that makes its verdict."""
    if not hints:
        raise ValueError("hints: expected at least one, got none")

    def decorate(model) -> Exercise:
        function = getattr(model, "py_func", model)
        name, why = function.__name__.replace("_", " "), inspect.getdoc(function) or ""
        why = " ".join(why.split())
        judged = functools.partial(verdict, model, name)
        return Exercise(name, judged, hints, why, lambda: own(model))

    return decorate
