"""A cell of a notebook as a rank program, for the magic `%%ranks` of `cnnlab.plots.ranks`."""

import ast
import copy
import io
import types
from collections.abc import Sequence

import numpy as np

from cnnlab.ranks import record
from cnnlab.ranks.record import Record
from cnnlab.ranks.slow import network
from cnnlab.ranks.virtual import Link, World

CELL = "cell"  # the name of the file, in a message such as "cell:3"


class Program:
    """A cell as a program of `comm`: what a rank runs, and what it prints and returns.

    A rank finds `comm`, `rank`, `size`, `np` and the notebook's names, of whose arrays it has
    copies of its own. Its result is the cell's last expression, as in any cell.
    """

    def __init__(self, text: str):
        tree, end = ast.parse("\n" + text, CELL), None  # so that line numbers are the cell's
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not text.rstrip().endswith(";"):
            end = ast.Expression(tree.body.pop().value)
        self.body = compile(tree, CELL, "exec")
        self.end = compile(end, CELL, "eval") if end else None
        self.names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}

    def run(self, comm, names: dict) -> tuple[object, str]:
        """What a rank finds, and what it prints."""
        own, said = np.ndarray | list | dict | set, io.StringIO()  # ranks share no memory
        mine = {n: copy.copy(item) if isinstance(item, own) else item for n, item in names.items()}
        mine |= {"comm": comm, "rank": comm.rank, "size": comm.size, "np": np}
        mine["print"] = lambda *words, **how: print(*words, **({"file": said} | how))
        exec(self.body, mine)
        return eval(self.end, mine) if self.end else None, said.getvalue()


def run_virtually(
    text: str, names: dict, n_ranks: int, network: str | None, measured: bool
) -> tuple[list, Record]:
    """What each virtual rank finds and prints, and the record of the run."""
    program, world = Program(text), World(n_ranks, network, measured=measured)
    return world.run(lambda comm: program.run(comm, names)), world.record


def run_really(text: str, names: dict, n_ranks: int, link: str | None) -> tuple[list, Record]:
    """The same on real ranks of this machine, whose messages a link may slow."""
    from cnnlab.ranks.cluster import cluster

    with cluster(n_ranks) as ranks:
        names = push(ranks, Program(text).names, names)
        result, logs, links = zip(*ranks.run(on_a_rank, text, names, link), strict=True)
    return list(result), record.record(logs, links[0])


def push(ranks, wanted: set[str], names: dict) -> list[str]:
    """Give the ranks of a cluster what is `needed`, under the same names; return these."""
    sent, modules = needed(wanted, names)
    for name, module in modules.items():
        ranks.view.execute(f"import {module} as {name}")
    ranks.view.push(sent)
    return [*sent, *modules]


def needed(wanted: set[str], names: dict) -> tuple[dict, dict[str, str]]:
    """Of the notebook's names, those that a cell reads, and functions of it: things and modules."""
    values, modules, open_ = {}, {}, set(wanted)
    while open_:
        name = open_.pop()
        if name not in names or name in values or name in modules:
            continue
        if isinstance(names[name], types.ModuleType):
            modules[name] = names[name].__name__
        else:
            values[name] = names[name]
        if isinstance(names[name], types.FunctionType):
            open_ |= names_in(names[name].__code__)
    return values, modules


def names_in(code: types.CodeType) -> set[str]:
    """The names that a function reads from outside, and those of functions in it."""
    inner = [names_in(const) for const in code.co_consts if isinstance(const, types.CodeType)]
    return set(code.co_names).union(*inner)


def on_a_rank(text: str, names: Sequence[str], link: str | None) -> tuple:
    """On a real rank: what it finds and prints, its log, and what the network was slowed to."""
    from IPython import get_ipython
    from mpi4py import MPI

    known = get_ipython().user_ns
    mine = {name: known[name] for name in names}
    if link is None:
        comm = record.Traced(MPI.COMM_WORLD)
        return Program(text).run(comm, mine), comm.log, ""
    link = Link.parse(link)
    with network(link.latency, link.bandwidth) as comm:
        return Program(text).run(comm, mine), comm.wire.log, str(link)
