"""A cell of a notebook as a rank program, for the magic `%%ranks` of `cnnlab.plots.ranks`."""

import ast
import copy
import io

import numpy as np

from cnnlab.ranks.record import Record
from cnnlab.ranks.virtual import World

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

    def run(self, comm, names: dict) -> tuple[object, str]:
        """What a rank finds, and what it prints."""
        own, said = np.ndarray | list | dict | set, io.StringIO()  # ranks share no memory
        mine = {n: copy.copy(item) if isinstance(item, own) else item for n, item in names.items()}
        mine |= {"comm": comm, "rank": comm.rank, "size": comm.size, "np": np}
        mine["print"] = lambda *words, **how: print(*words, **({"file": said} | how))
        exec(self.body, mine)
        return eval(self.end, mine) if self.end else None, said.getvalue()


def run_virtually(text: str, names: dict, n_ranks: int, network: str | None) -> tuple[list, Record]:
    """What each virtual rank finds and prints, and the record of the run."""
    program, world = Program(text), World(n_ranks, network)
    return world.run(lambda comm: program.run(comm, names)), world.record
