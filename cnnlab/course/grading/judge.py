"""The verdict on an answer: what is expected stays here, the answer's code never comes in."""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numba
import numpy as np

from cnnlab.check import collective, device, machine_code, operation, threads
from cnnlab.check.inputs import CASES, CROWDS, STRIDE_ONE, Case, guarded
from cnnlab.check.kinds import Exercise
from cnnlab.check.verdict import Verdict
from cnnlab.course.grading import devices, programs, speed, vet
from cnnlab.course.grading.find import Answer
from cnnlab.course.grading.sandbox import Ended, Limits, Sandbox
from cnnlab.course.grading.wire import Raised
from cnnlab.runtime import thread_pool

NOT_TEXT = re.compile(r"[^\x20-\x7e\u00a0-\u2fff]")


@dataclass(frozen=True)
class Group:
    """A group of cases, and what they have shown."""

    name: str
    passed: float  # the part of it that is right, 0 to 1
    text: str


@dataclass
class Judge:
    """The verdicts on one answer; `package` is a cnnlab without answers, `whole` one with."""

    exercise: Exercise
    answer: Answer
    package: Path
    whole: Path
    limits: Limits
    speed: float | None = None
    box: Sandbox | None = None
    found: list[Group] = field(default_factory=list)
    late: bool = False  # whether it has used up its time

    def groups(self) -> list[Group]:
        """What each group of cases has shown: no other is tried if the first is wrong."""
        if self.answer.empty:
            return [Group("answer", 0, "not yet answered")]
        try:
            for name, judged in self.asks():
                late = Group(name, 0, "not tried, as its time is over")
                self.found.append(late if self.late else self.group(name, judged))
                if not self.found[0].passed:
                    break
        except Ended as problem:
            self.found.append(Group("answer", 0, f"{self.exercise.name}: {problem}"))
        finally:
            self.close()
        return self.found

    def group(self, name: str, judged: Callable[[], Verdict | Group]) -> Group:
        """A group's verdict; an answer whose process has ended gets a new one for the next."""
        try:
            found = judged()
        except Raised as problem:
            found = Verdict(False, f"raised {problem.kind}: {problem.text}")
        except Ended as problem:
            self.close()
            self.late = "not done after" in str(problem)
            found = Verdict(False, f"{self.exercise.name}: {problem}")
        except Exception as problem:  # one odd answer shall not cost a student all the others
            self.close()
            found = Verdict(False, f"{self.exercise.name}: cannot be judged: {problem!r}")
        if isinstance(found, Group):
            return found
        return Group(name, float(bool(found)), cleaned(found.text))

    def asks(self) -> Iterator[tuple[str, Callable]]:
        """The groups of cases of an exercise of this kind, from plain to awkward."""
        exercise, asked = self.exercise, self.exercise.asked
        if exercise.kind == "labels":
            yield "answer", self.labels
        elif asked is None:
            yield "answer", lambda: exercise.verdict(self.given())
        elif asked.by is collective.kernel:
            yield from self.of_ranks(asked.operation)
        elif exercise.kind == "cuda_c":
            yield from self.of_device(asked)
        else:
            parallel = asked.by is threads.kernel
            yield from self.of_threads(asked.operation) if parallel else self.of_kernel(asked)
            if self.speed:
                yield "speed", lambda: self.timed(asked.operation)

    # --- the process of the answer ---

    def opened(self) -> Sandbox:
        """The process of the answer, which has run its code."""
        if self.box is None:
            self.box = Sandbox(self.package, self.limits)
            self.start(self.box)
        return self.box

    def start(self, box: Sandbox):
        """Let a process run the code; return what the answer is."""
        kind, value = pair(box.call("start", self.answer.code, self.answer.expression))
        if kind == "cuda":
            self.answer = Answer("", self.answer.expression, str(value))
        self.value = (kind, value)
        return kind

    def close(self) -> None:
        """End the process."""
        if self.box is not None:
            self.box.close()
            self.box = None

    def given(self):
        """The answer as a check takes it: its value, or a function that calls the process."""
        self.opened()
        kind, value = self.value
        return self.function if kind == "function" else value

    def function(self, *arguments, **options):
        """Call the answer's function in its process; raise what it raises, by name."""
        more = {"pool": numba.get_num_threads()} if self.exercise.asked else {}
        try:
            return self.opened().call("call", *arguments, options=options, **more)
        except Raised as problem:
            raise type(cleaned(problem.kind), (Exception,), {})(problem.text) from None

    # --- what is asked, by kind ---

    def labels(self) -> Group:
        """As large a part as there are right words."""
        given, expected = self.given(), self.exercise.model()
        verdict = self.exercise.verdict(given if isinstance(given, list) else [given])
        right = 0
        if isinstance(given, list) and len(given) == len(expected):
            right = sum(a is not ... and a == b for a, b in zip(given, expected, strict=True))
        return Group("answer", right / len(expected), cleaned(verdict.text))

    def of_kernel(self, asked, cases: Sequence[Case] = CASES):
        """Numbers by groups of cases; before them vectors, if these are asked for."""
        if asked.by is machine_code.kernel:
            yield "vectors", lambda: self.look("vectors", asked.operation)
        options = dict(asked.options)
        cases = options.pop("cases", cases)
        for name, group in grouped(cases).items():
            yield (
                name,
                lambda g=group: operation.kernel(asked.operation, self.own(), cases=g, **options),
            )
        if asked.by not in (operation.kernel, machine_code.kernel):
            yield "all", lambda: self.exercise.verdict(self.own())

    def own(self) -> Callable:
        """The answer as a function."""
        found = self.given()
        if not callable(found):
            raise Raised("TypeError", f"expected a function, got {found!r}")
        return found

    def of_threads(self, name: str):
        """Numbers on one thread, then on several; races from the log of accesses."""
        yield "parallel", lambda: self.look("parallel", name)
        for group, cases in grouped(STRIDE_ONE).items():
            yield group, lambda c=cases: self.on(name, 1, c)
        several = sorted({min(n, thread_pool.size()) for n in (2, 3, 16)} - {1})
        for n in several:
            yield f"{n} threads", lambda n=n: self.on(name, n, [*STRIDE_ONE[:12], *CROWDS * 3])
        yield "no race", lambda: self.look("races", name)

    def on(self, name: str, n_threads: int, cases: Sequence[Case]) -> Verdict:
        """The verdict on numbers that come from so many threads."""
        with thread_pool.threads(n_threads):
            return operation.kernel(name, self.own(), cases=cases)

    def timed(self, name: str) -> Verdict:
        """The verdict on the speed of a kernel, on as many threads as there are cores."""
        with thread_pool.threads(), Sandbox(self.whole, self.limits) as base:
            return speed.beside_vector(name, self.own(), base, self.speed)

    def closed(self, name: str) -> str:
        """Why an answer cannot be looked into; "" if it can."""
        reaches = vet.reaches(self.answer.code)
        return f"{name}: cannot be looked into, for {reaches}" if reaches else ""

    def look(self, what: str, name: str) -> Verdict:
        """The verdict of `looks`, in a process without anything else of the student's."""
        if wrong := self.closed(name):
            return Verdict(False, wrong)
        with Sandbox(self.whole, self.limits) as box:
            self.start(box)
            wrong = str(box.call("look", what, name))
        return Verdict(not wrong, f"{name}: {wrong}" if wrong else f"{name}: {what}: nothing wrong")

    def of_device(self, asked):
        """The whole verdict on CUDA C, or its numbers alone."""
        if self.answer.cuda is None:
            self.opened()
            self.close()  # launches get a process that has run nothing of the student's Python
        source = self.answer.cuda
        if source is None or (wrong := devices.refused(source)):
            wrong = "expected the kernels of %%cuda" if source is None else wrong
            yield "answer", lambda: Verdict(False, f"{self.exercise.name}: {wrong}")
            return
        self.box = self.box or Sandbox(self.package, self.limits)
        kernels = devices.Kernels(source, self)
        whole: list[Verdict] = []

        def all_of_it() -> Verdict:
            whole.append(self.exercise.verdict(kernels))
            return whole[0]

        yield "numbers", lambda: numbers_of(all_of_it(), asked.by)
        yield "accesses", lambda: whole[0]

    def call(self, what: str, *arguments):
        """For `devices.Kernels`: a launch, in the process that is open."""
        self.box = self.box or Sandbox(self.package, self.limits)
        return self.box.call(what, *arguments)

    def of_ranks(self, name: str):
        """Ranks in the virtual world, by their number; then under MPI; and what luck may hide."""
        if wrong := self.closed(name):  # it could reach for the arrays of other ranks
            yield "answer", lambda: Verdict(False, wrong)
            return
        sizes = {"1, 2 or 4 ranks": (1, 2, 4), "3 or 5 ranks": (3, 5)}
        for group, some in sizes.items():
            yield group, lambda some=some: self.on_ranks(name, some, virtual=True)
        yield "messages", lambda: self.look("messages", name)
        every = range(1, collective.MOST + 1)
        if programs.has_mpi():  # else nobody loses points for it
            yield "under MPI", lambda: self.on_ranks(name, every, virtual=False)

    def on_ranks(self, name: str, sizes: Sequence[int], virtual: bool) -> Verdict:
        """The verdict on the arrays of all ranks, and on the guards around them."""
        self.own()
        drawn = [
            np.random.default_rng([size, n]).uniform(0.5, 1, (size, n)).astype(np.float32)
            for size, n in itertools.product(sizes, collective.SIZES)
        ]
        jobs = tuple(tuple(guarded(row, 7) for row in values) for values in drawn)
        source = self.answer.code, self.answer.expression
        self.opened().call("ranks", jobs, *source, options={"virtual": virtual})
        for values, arrays in zip(drawn, jobs, strict=True):
            for rank, array in enumerate(arrays):
                wrong = collective.compare(name, array, values, rank)
                around = array.base
                if not (np.all(around[:64] == 7) and np.all(around[-64:] == 7)):
                    wrong = wrong or f"rank {rank}: wrote outside its array"
                if wrong:
                    return Verdict(False, f"{name} on {len(values)} ranks: {wrong}")
        return Verdict(True, f"{name} is right on {', '.join(map(str, sizes))} ranks")


def numbers_of(verdict: Verdict, by: Callable) -> Verdict:
    """The part of a verdict on CUDA C that is about numbers."""
    accesses_only = by is device.kernel and "The numbers are right, but" in verdict.text
    return Verdict(True, "the numbers are right") if accesses_only else verdict


def grouped(cases: Sequence[Case]) -> dict[str, list[Case]]:
    """Cases by what they try."""
    found: dict[str, list[Case]] = {}
    plain = CASES[:7]
    for each in cases:
        name = "plain shapes" if each in plain else "odd sizes"
        name = "strides" if each.stride > 1 else "unusual numbers" if each.kind else name
        found.setdefault(name, []).append(each)
    return found


def pair(value) -> tuple:
    """A kind and a value; an answer that sends anything else has broken the rules."""
    if not isinstance(value, tuple) or len(value) != 2 or not isinstance(value[0], str):
        raise Ended("gave no result: it is no answer")
    return value


def cleaned(text: str) -> str:
    """Words of an answer that may be shown: short, and without control characters."""
    return NOT_TEXT.sub(" ", str(text))[:400]
