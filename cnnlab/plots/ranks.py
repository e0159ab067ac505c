"""Pictures of a run of ranks: what each does when, and who sends to whom.

They are drawn from a `cnnlab.ranks.record.Record`. Virtual seconds are called that on the axis.
"""

import argparse
import shlex
import textwrap
from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patches import Patch

from cnnlab.measure.timing import digits, in_words, time_unit
from cnnlab.plots.style import COLORS, INK, as_rows, figure
from cnnlab.ranks import cells
from cnnlab.ranks.cells import CELL
from cnnlab.ranks.record import Record
from cnnlab.runtime.arguments import Parser, parse_whole

KINDS = {
    "computing": (("compute",), COLORS["threads"]),
    "sending": (("send",), COLORS["vector"]),
    "receiving, waiting": (("receive", "wait"), COLORS["loops"]),
}
FEW = 16  # ranks: each has a label
ARROWS = 300  # messages; of more, arrows would cover each other


@figure
def over_time(record: Record) -> Axes:
    """Draw what each rank does when, a row for each, and an arrow for each message.

    An arrow leads from the begin of a send to the end of its receive; of many ranks some are named.
    """
    _, ax = plt.subplots(figsize=(9, 1.2 + record.size * (0.45 if record.size <= FEW else 0.14)))
    scale, unit = time_unit(record.span()[1])
    if record.virtual:
        unit = f"virtual {unit} ({record.network})"
    for kinds, color in KINDS.values():
        for rank in range(record.size):
            mine = [e for e in record.events if e.rank == rank and e.kind in kinds]
            spans = [(scale * e.begin, scale * (e.end - e.begin)) for e in mine]
            ax.broken_barh(spans, (rank - 0.3, 0.6), color=color, linewidth=0)
    ends = [((scale * m.begin, m.source), (scale * m.end, m.to)) for m in record.messages]
    if len(ends) <= ARROWS:
        look = {"arrowstyle": "-|>,head_length=0.3,head_width=0.15", "color": INK, "lw": 0.8}
        for begin, end in ends:
            ax.annotate("", end, begin, arrowprops=look | {"shrinkA": 0, "shrinkB": 0})
    else:
        ax.add_collection(LineCollection(ends, colors=INK, linewidths=0.25))
    seen = {event.kind for event in record.events}
    shown = {name: color for name, (kinds, color) in KINDS.items() if seen & {*kinds}}
    keys = [Patch(color=color, label=name) for name, color in shown.items()]
    look = {"frameon": False, "borderaxespad": 0, "fontsize": 9}
    ax.legend(handles=keys, ncols=3, loc="lower left", bbox_to_anchor=(0, 1.01), **look)
    ax.set(xlabel=unit, xlim=(0, None))
    ticks = range(0, record.size, 1 if record.size <= FEW else 8)
    ax.set_yticks(ticks, [f"rank {rank}" for rank in ticks])
    return as_rows(ax, range(record.size))


def in_bytes(n: int) -> str:
    """A number of bytes in words."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if n >= factor:
            return f"{digits(n / factor)} {unit}"
    return f"{n:g} B"


# --- the cell magic `%%ranks`: a cell runs on every virtual rank ----------------------------------

RANK_CELLS_FEW = 8  # ranks whose run is drawn
WIDTH = 80  # of a result


def options(line: str) -> argparse.Namespace:
    """The words behind `%%ranks`: how many, and how. Raises ValueError for any other."""
    parser = Parser(prog="%%ranks", add_help=False)
    parser.add_argument("n_ranks", type=parse_whole)
    parser.add_argument("name", nargs="?")
    parser.add_argument("--link")
    return parser.parse_args(shlex.split(line))


def said(outcome: Sequence[tuple[object, str]]) -> str:
    """What ranks printed and found, in their order; those that found the same in one line."""
    lines = [
        f"rank {r}: {line}" for r, (_, text) in enumerate(outcome) for line in text.splitlines()
    ]
    results = [textwrap.shorten(repr(result), WIDTH, placeholder=" …") for result, _ in outcome]
    if set(results) == {"None"}:
        return "\n".join(lines)
    if len(results) > 1 and len(set(results)) == 1:
        return "\n".join([*lines, f"all {len(results)} ranks: {results[0]}"])
    shown = [f"rank {r}: {result}" for r, result in enumerate(results)]
    if len(shown) > RANK_CELLS_FEW:
        shown = [*shown[: RANK_CELLS_FEW - 2], "…", shown[-1]]
    return "\n".join([*lines, *shown])


def summary(record: Record) -> str:
    """Time, messages and bytes, and whose they are."""
    seconds, n_bytes = record.span()[1], sum(message.n_bytes for message in record.messages)
    n = len(record.messages)
    what = f"{n} message{'s' * (n != 1)}, {in_bytes(n_bytes)}"
    return f"{record.size} virtual ranks, {record.network}: {in_words(seconds)} virtual, {what}"


def problem(error: Exception) -> str:
    """A failure in one line, with rank and line of the cell where these are known."""
    if outcome := getattr(error, "faults", []):
        return "; ".join(map(str, outcome[:4]))
    lines, traced = [], error.__traceback__
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

    `%%ranks 8 run --link 10us,1GB/s` also keeps the record of the run as `run`, for
    `over_time`. What is computed between messages takes virtual time by `comm.compute` alone.
    """
    from IPython.core.error import UsageError  # shown as one line, without a traceback

    def ranks(line: str, cell: str) -> None:
        try:
            chosen = options(line)
            names = {n: group for n, group in ipython.user_ns.items() if not n.startswith("_")}
            outcome, record = cells.run_virtually(cell, names, chosen.n_ranks, chosen.link)
        except Exception as error:
            raise UsageError(f"%%ranks {line.strip()}: {problem(error)}") from error
        if chosen.name:
            ipython.user_ns[chosen.name] = record
        print("\n".join(filter(None, [said(outcome), summary(record)])))
        if record.size <= RANK_CELLS_FEW and record.messages:
            over_time(record, title=summary(record))

    ipython.register_magic_function(ranks, "cell")
