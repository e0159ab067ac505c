"""The cell magic `%%ranks`: a cell runs on every rank, virtual or real.

`%load_ext cnnlab.show.rank_cells` registers it.
"""

import argparse
import re
import shlex
import textwrap
from collections.abc import Sequence

from cnnlab.bench.measure import in_words
from cnnlab.ranks import cells
from cnnlab.ranks.cells import CELL
from cnnlab.ranks.record import Record
from cnnlab.runtime.arguments import parse_whole
from cnnlab.show.ranks import in_bytes, over_time

FEW = 8  # ranks whose run is drawn
WIDTH = 80  # of a result


class Parser(argparse.ArgumentParser):
    """A parser of the magic's line that answers a mistake with ValueError."""

    def error(self, message: str):
        raise ValueError(message)


def options(line: str) -> argparse.Namespace:
    """The words behind `%%ranks`: how many, and how. Raises ValueError for any other."""
    parser = Parser(prog="%%ranks", add_help=False)
    parser.add_argument("n_ranks", type=parse_whole)
    parser.add_argument("name", nargs="?")
    parser.add_argument("--link")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--measured", action="store_true")
    return parser.parse_args(shlex.split(line))


def told(found: Sequence[tuple[object, str]]) -> str:
    """What ranks printed and found, in their order; those that found the same in one line."""
    lines = [f"rank {r}: {line}" for r, (_, text) in enumerate(found) for line in text.splitlines()]
    results = [textwrap.shorten(repr(result), WIDTH, placeholder=" …") for result, _ in found]
    if set(results) == {"None"}:
        return "\n".join(lines)
    if len(results) > 1 and len(set(results)) == 1:
        return "\n".join([*lines, f"all {len(results)} ranks: {results[0]}"])
    shown = [f"rank {r}: {result}" for r, result in enumerate(results)]
    return "\n".join([*lines, *shortened(shown)])


def shortened(lines: list[str]) -> list[str]:
    """The first and the last of many lines."""
    return lines if len(lines) <= FEW else [*lines[: FEW - 2], "…", lines[-1]]


def summary(record: Record) -> str:
    """Time, messages and bytes, and whose they are."""
    seconds, n_bytes = record.span()[1], sum(message.n_bytes for message in record.messages)
    what = f"{len(record.messages)} messages, {in_bytes(n_bytes)}"
    if record.virtual:
        return f"{record.size} virtual ranks, {record.network}: {in_words(seconds)} virtual, {what}"
    slowed = f", network slowed to {record.network}" if record.network else ""
    return f"{record.size} ranks{slowed}: {in_words(seconds)} on this machine, {what}"


def problem(error: Exception) -> str:
    """A failure in one line, with rank and line of the cell where these are known."""
    if found := getattr(error, "faults", []):
        return "; ".join(map(str, found[:4]))
    lines = [f"{CELL}:{n}: " for n in re.findall(rf"File {CELL}[:,](?: line )?(\d+)", str(error))]
    traced = error.__traceback__
    while traced:
        if traced.tb_frame.f_code.co_filename == CELL:
            lines.append(f"{CELL}:{traced.tb_lineno}: ")
        traced = traced.tb_next
    ranks = [note.split(" of ")[0].removeprefix("raised by ") + ", " for note in
             getattr(error, "__notes__", []) if note.startswith("raised by rank")]  # fmt: skip
    text = " ".join(str(error).splitlines()[:1])
    return "".join(ranks[:1] + lines[-1:]) + f"{type(error).__name__}: {text}"


def load_ipython_extension(ipython) -> None:
    """Register `%%ranks 64`: the cell runs on 64 virtual ranks, each of which has its `comm`.

    `%%ranks 8 run --link 10us,1GB/s` also keeps the record of the run as `run`, for the pictures of
    `cnnlab.show.ranks`. With `--real`, the ranks are processes, and the link slows them. What is
    computed between messages takes no virtual time unless by `comm.compute`, or with `--measured`.
    """
    from IPython.core.error import UsageError  # shown as one line, without a traceback

    def ranks(line: str, cell: str) -> None:
        try:
            chosen = options(line)
            names = {n: of for n, of in ipython.user_ns.items() if not n.startswith("_")}
            if chosen.real:
                found, record = cells.run_really(cell, names, chosen.n_ranks, chosen.link)
            else:
                how = chosen.n_ranks, chosen.link, chosen.measured
                found, record = cells.run_virtually(cell, names, *how)
        except Exception as error:
            raise UsageError(f"%%ranks {line.strip()}: {problem(error)}") from error
        if chosen.name:
            ipython.user_ns[chosen.name] = record
        print("\n".join(filter(None, [told(found), summary(record)])))
        if record.size <= FEW and record.messages:
            over_time(record, title=summary(record))

    ipython.register_magic_function(ranks, "cell")
