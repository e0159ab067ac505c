"""Loops that say which iteration a thread is in, so that a trace knows who is in step."""

import re

LOOP = re.compile(r"\b(do\b|for\b(?=\s*\()|while\b(?=\s*\())\s*")
TAIL = re.compile(r"[^;]*?;?\s*\bwhile\b")  # of do: after its block, or its one statement
CONSTANT = re.compile(r"\bconstexpr\b[^;={]*\)\s*\{")  # a function whose loops must stay


def counted(source: str) -> str:
    """C++ whose loops count their iterations, see `emulator::Loop` in device.h; lines stay.

    Threads that are at one place, in the same iteration of each loop around it, are in step there.
    A loop over a range is left as it is, and so is a `do` without braces.
    """
    if CONSTANT.search(source):
        return source
    inserted, tails = [], set()
    for number, result in enumerate(LOOP.finditer(source), 1):
        start = result.end()
        if result.start() in tails:
            continue
        end, semicolons = closing(source, start) if source[start] in "({" else (start, [])
        if result[1] == "do":
            if tail := TAIL.match(source, end):
                tails.add(tail.end() - len("while"))
            if source[start] != "{":
                continue
            added = [(start + 1, "emulator_loop.next();")]
        elif result[1] == "while":
            added = [(start + 1, "emulator_loop.next() && ("), (end - 1, ")")]
        elif len(semicolons) == 2:
            first, last = semicolons
            empty = not source[first + 1 : last].strip()
            added = [(first + 1, " emulator_loop.next()" + ("" if empty else " && ("))]
            added += [] if empty else [(last, ")")]
        else:
            continue
        head = f"for (emulator::Loop emulator_loop({number}); emulator_loop.once();) "
        inserted += [(result.start(), head), *added]
    for at, text in sorted(inserted, reverse=True):
        source = source[:at] + text + source[at:]
    return source


def closing(source: str, start: int) -> tuple[int, list[int]]:
    """Where the bracket that opens at `start` has closed; the semicolons directly in it."""
    depth, semicolons = 0, []
    for at in range(start, len(source)):
        depth += (source[at] in "([{") - (source[at] in ")]}")
        if source[at] == ";" and depth == 1:
            semicolons.append(at)
        if not depth:
            return at + 1, semicolons
    return len(source), semicolons
