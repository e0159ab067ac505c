"""How the grader and an answer speak to each other: messages of text and arrays, over a socket.

Both sides use the same few lines: either may call what the other has, also while it is called.
"""

import json
import math
import socket
import struct
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from cnnlab.course.grading.values import ARITHMETIC, MOST, Broken, Memory, Values, refill

TICK = 0.25  # seconds
STUCK = 10.0  # seconds in which a buffer must be taken
HEAD = struct.Struct("<QQ")  # bytes of the text, and of the arrays


class Raised(Exception):
    """What the other side raised: its kind and its words."""

    def __init__(self, kind: str, text: str):
        super().__init__(kind, text)
        self.kind, self.text = kind, text


class Peer(Values):
    """One end of a conversation: it calls what the other side has, and is called meanwhile."""

    def __init__(self, connection: socket.socket, own: dict[int, Any] | None = None, shares=False):
        super().__init__(own, shares)
        self.connection = connection
        self.deadline = math.inf  # of time.monotonic
        self.tick: Callable[[], None] = lambda: None  # called now and then, while it waits

    # --- calls ---

    def call(self, what: str, number: int, arguments: Iterable, options: dict, **more):
        """What `what` of the other side's object returns; arrays are changed in place.

        Raises Raised with what it raised, and Broken if there is no answer.
        """
        arguments, memory = list(arguments), Memory()
        text = {"do": what, "on": number, **more}
        text |= {"given": self.pack(arguments, memory), "named": self.pack(options, memory)}
        self.send(text, memory.bytes())
        while True:
            reply, buffers = self.receive()
            if "do" not in reply:
                break
            self.serve(reply, buffers)
        if buffers or "raised" not in reply:
            memory.restore(buffers)
        if "raised" in reply:
            raise Raised(*(str(part)[:2000] for part in (*reply["raised"], "", "")[:2]))
        later = self.unpack(reply.get("after"), buffers)
        if not isinstance(later, list) or len(later) != len(arguments):
            raise Broken("no reply")
        for before, after in zip(arguments, later, strict=True):
            refill(before, after)
        return self.unpack(reply.get("value"), buffers)

    def serve(self, message: dict, buffers: list) -> None:
        """Do what a message asks for, and reply."""
        memory = Memory()
        memory.roots = [np.frombuffer(buffer, np.uint8) for buffer in buffers]
        memory.given = [None] * len(buffers)
        reply: dict = {}
        try:
            given = self.unpack(message.get("given"), memory.roots)
            named = self.unpack(message.get("named"), memory.roots)
            value = self.perform(message, given, named)
            reply["value"] = self.pack(value, memory)
            kept = [each if isinstance(each, list | dict | set) else None for each in given]
            reply["after"] = self.pack(kept, memory)
        except (Exception, SystemExit) as error:
            reply = {"raised": [type(error).__name__, str(error)]}
        try:
            self.send(reply, memory.bytes())
        except ValueError as error:  # too much
            self.send({"raised": [type(error).__name__, str(error)]}, [])

    def perform(self, message: dict, given: list, named: dict):
        """Call one of our own objects, or compute with it."""
        mine, what = self.own.get(message.get("on")), message.get("do")
        if what in ARITHMETIC:
            return ARITHMETIC[what](mine, *given)
        if what != "call":
            raise Broken("asked for what is not there")
        return mine(*given, **named)

    # --- messages ---

    def send(self, text: dict, buffers: list[bytes]) -> None:
        """Send a message; raises Broken if nobody is there."""
        words = json.dumps(text | {"sizes": [len(buffer) for buffer in buffers]}).encode()
        if len(words) + sum(map(len, buffers)) > MOST:
            raise ValueError(f"expected at most {MOST >> 20} MB to send, got more")
        try:
            self.wait()
            self.connection.sendall(HEAD.pack(len(words), sum(map(len, buffers))) + words)
            for buffer in buffers:
                self.connection.settimeout(None if self.deadline == math.inf else STUCK)
                self.connection.sendall(buffer)
        except OSError as error:
            raise Broken(str(error)) from None

    def receive(self) -> tuple[dict, list[bytearray]]:
        """The next message, and its arrays' bytes; raises Broken if there is none."""
        n_words, n_bytes = HEAD.unpack(self.read(HEAD.size))
        if n_words + n_bytes > MOST:
            raise Broken(f"a result of more than {MOST >> 20} MB")
        try:
            text = json.loads(self.read(n_words))
            sizes = text["sizes"]
            if not all(type(n) is int and n >= 0 for n in sizes) or sum(sizes) != n_bytes:
                raise ValueError
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Broken("no message") from None
        return text, [self.read(n) for n in sizes]

    def read(self, n: int) -> bytearray:
        """So many bytes."""
        got, view = 0, memoryview(room := bytearray(n))
        while got < n:
            try:
                self.wait()
                more = self.connection.recv_into(view[got:])
            except TimeoutError:
                if time.monotonic() > self.deadline:
                    raise Broken("its time is over") from None
                self.tick()
                continue
            except OSError as error:
                raise Broken(str(error)) from None
            if not more:
                raise Broken("it has ended")
            got += more
        return room

    def wait(self) -> None:
        """Let no step take longer than there is time, and come back now and then."""
        if self.deadline < math.inf:
            left = self.deadline - time.monotonic()
            self.connection.settimeout(min(max(left, 1e-3), TICK))
