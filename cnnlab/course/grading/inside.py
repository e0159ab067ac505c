"""The answer's side of the wall: a process of its own, which runs the answer and nothing else.

It gets inputs and gives back what the answer makes of them. What is expected it is never told.
`python -m cnnlab.course.grading.inside FD` speaks to the grader on that file descriptor; the first
message has the code and the limits.
"""

import os
import resource
import socket
import sys
import types
from collections.abc import Callable
from pathlib import Path

from cnnlab.course.grading.wire import Peer

FILE = "answer.py"  # in the folder where this process works


class Answer(Peer):
    """The end of the conversation that holds the answer."""

    answer = None

    def perform(self, message: dict, given: list, named: dict):
        """Do to the answer what the grader asks for."""
        if message["do"] == "start":
            return self.start(*given)
        if message["do"] == "call":
            if "pool" in message and "numba" in sys.modules:
                sys.modules["numba"].set_num_threads(message["pool"])
            return self.answer(*given, **named)
        if message["do"] == "launch":
            from cnnlab.course.grading.devices import launch

            return launch(*given)
        if message["do"] == "ranks":
            from cnnlab.course.grading.programs import in_virtual_world, under_mpi

            return (in_virtual_world if named["virtual"] else under_mpi)(self.answer, *given)
        if message["do"] == "look":
            from cnnlab.course.grading.looks import LOOKS

            return LOOKS[given[0]](self.answer, *given[1:])
        raise ValueError(f"do: expected something to do, got {message['do']!r}")

    def start(self, code: str, expression: str):
        """Run the code, and find the answer in it: its value, or that it is a function."""
        Path(FILE).write_text(code, encoding="utf-8")
        module = types.ModuleType("answer")
        sys.modules["answer"], module.__file__ = module, os.path.abspath(FILE)
        exec(compile(code, module.__file__, "exec"), vars(module))  # what else it is here for
        self.answer = eval(expression, vars(module))
        if hasattr(self.answer, "launch") and hasattr(self.answer, "source"):
            return "cuda", self.answer.source
        if isinstance(self.answer, Callable):
            return "function", getattr(self.answer, "__name__", "")[:100]
        return "value", self.answer


def limit(seconds: int, memory: int, output: int, processes: int) -> None:
    """Bound what this process and those that it starts may take; see `sandbox.Limits`."""
    bounds = {
        "RLIMIT_CPU": seconds,
        "RLIMIT_AS": memory,
        "RLIMIT_FSIZE": output,
        "RLIMIT_NPROC": processes,
        "RLIMIT_CORE": 0,
    }
    for name, most in bounds.items():
        if hasattr(resource, name):
            kind = getattr(resource, name)
            hard = resource.getrlimit(kind)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (most, most))


def main(words: list[str]) -> None:
    """Set the limits, and serve the grader until it hangs up."""
    number, *bounds = map(int, words)
    limit(*bounds)
    peer = Answer(socket.socket(fileno=number))
    while True:
        peer.serve(*peer.receive())


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Exception:  # the grader has hung up, or cannot be reached: there is nobody to tell
        os._exit(1)
