"""How ranks train together, as words on the command line: `--ranks NAME` and what goes with it."""

import argparse
import inspect
import re
from collections.abc import Callable, Mapping

from cnnlab.distributed import METHODS
from cnnlab.distributed.averaging import GRAPHS
from cnnlab.distributed.compressors import COMPRESSORS, compressor
from cnnlab.distributed.model import CUTS
from cnnlab.kernels import find
from cnnlab.ranks.job import LOST
from cnnlab.ranks.pipeline import SCHEDULES
from cnnlab.runtime.arguments import Entry, parse_positive, parse_whole
from cnnlab.training.method import Method

LINK = "10us,1GB/s"  # between virtual ranks, unless another is asked for
OPTIONS = "schedule micro-batches grid cut compress every moving-rate graph staleness servers lost"
# By option: the argument of the methods that take it.
ARGUMENTS = {f"--{name}": name.replace("-", "_") for name in OPTIONS.split()}
ARGUMENTS["--micro-batches"] = "n_micro"


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options that say how ranks train together, and which ranks."""
    option = command.add_argument_group("ranks, and how they train together").add_argument
    what = f"train on the ranks of mpiexec. {summaries(METHODS)}"
    option("--ranks", choices=METHODS, help=what)
    what = f"of a pipeline (default: 1f1b). {summaries(SCHEDULES)}"
    option("--schedule", choices=SCHEDULES, help=what)
    what = "that a pipeline cuts a batch into (default: 8)"
    option("--micro-batches", type=parse_whole, dest="n_micro", metavar="N", help=what)
    what = "ranks for data × pipeline × model, such as 2x2x2, with --ranks hybrid"
    option("--grid", type=parse_grid, metavar="DxPxM", help=what)
    what = f"of a layer among ranks (default: features). {summaries(CUTS)}"
    option("--cut", choices=CUTS, help=what)
    what = f"of gradients, with --ranks data or server (default: none). {summaries(COMPRESSORS)}"
    option("--compress", type=parse_compressor, metavar="HOW", help=what)
    what = "steps from one average to the next (default: 8; of gossip 1)"
    option("--every", type=parse_whole, metavar="H", help=what)
    what = "share of the way to the centre, with --ranks elastic (default: 0.9 / ranks)"
    option("--moving-rate", type=parse_positive, metavar="A", help=what)
    what = f"of neighbours in gossip (default: ring). {summaries(GRAPHS)}"
    option("--graph", choices=GRAPHS, help=what)
    what = "steps by which a worker may lead, with --ranks server (default: 0), or any"
    option("--staleness", type=parse_staleness, metavar="S", help=what)
    what = "ranks that keep a block of the parameters each, with --ranks server (default: 1)"
    option("--servers", type=parse_whole, metavar="S", help=what)
    what = f"if a worker is killed, with --ranks server (default: end). {summaries(LOST)}"
    option("--lost", choices=LOST, help=what)
    what = "with --ranks: N ranks in one process, on clocks of their own"
    option("--virtual", type=parse_whole, metavar="N", help=what)
    what = f"latency and bandwidth between virtual ranks (default: {LINK})"
    option("--link", metavar="L,B", help=what)


def summaries(entries: dict) -> str:
    """Names and the lines about them, of a list of entries or of lines, in one line."""
    return "; ".join(f"{name}: {getattr(one, 'summary', one)}" for name, one in entries.items())


def link(chosen: argparse.Namespace) -> str | None:
    """The link between virtual ranks; None for real ones."""
    return chosen.link or (LINK if chosen.virtual else None)


def refuse_compiled(chosen: argparse.Namespace) -> None:
    """Raise ValueError unless all messages are sent by methods of a communicator, led by Python."""
    strategy = find(chosen.kernels or "vector")
    kinds = {name: way.load() for name, way in METHODS.items()}
    algorithms = [name for name, kind in kinds.items() if kind is not Method and not kind.kernels]
    if chosen.ranks not in algorithms or strategy.parallel or strategy.together:
        known, got = "|".join(algorithms), f"--ranks {chosen.ranks} --kernels {strategy.name}"
        what = f"expected --ranks {known} and kernels for one core, got {got}"
        raise ValueError(f"--virtual: {what}")


def parse_grid(text: str) -> tuple[int, int, int]:
    """The three numbers in a text such as 2x2x2; argparse.ArgumentTypeError for any other."""
    if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*){2}", text):
        raise argparse.ArgumentTypeError(f"expected three numbers such as 2x2x2, got {text!r}")
    return tuple(map(int, text.split("x")))


def parse_compressor(text: str) -> str:
    """The text, if it names a compressor, such as qsgd4; else argparse.ArgumentTypeError."""
    try:
        compressor(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem).removeprefix("compress: ")) from None
    return text


def parse_staleness(text: str) -> int | str:
    """A whole number of at least 0, or "any"; argparse.ArgumentTypeError for another text."""
    if text != "any" and not re.fullmatch(r"\d+", text):
        raise argparse.ArgumentTypeError(f"expected a whole number or any, got {text!r}")
    return text if text == "any" else int(text)


def given(chosen: argparse.Namespace) -> dict[str, object]:
    """The arguments for a method that have been given, by name."""
    result = {name: getattr(chosen, name, None) for name in ARGUMENTS.values()}
    return {name: value for name, value in result.items() if value is not None}


def arguments_of(entry: Entry) -> Mapping[str, inspect.Parameter]:
    """The arguments that a method takes, by name."""
    return inspect.signature(entry.load()).parameters


def method(chosen: argparse.Namespace) -> Callable[..., Method]:
    """The way to train that was chosen, as a function of a communicator.

    Raises ValueError for an option that does not go with it, or one that it lacks.
    """
    wanted = given(chosen)
    entry = METHODS[chosen.ranks or "alone"]
    way, takes = entry.load(), arguments_of(entry)
    for option, name in ARGUMENTS.items():
        if name in wanted and name not in takes:
            fit = [n for n, other in METHODS.items() if name in arguments_of(other)]
            known, got = " or ".join(fit), chosen.ranks or "none"
            raise ValueError(f"{option}: expected --ranks {known} with it, got {got}")
        if name in takes and name not in wanted and takes[name].default is inspect.Parameter.empty:
            what = f"such as 2x2x2, with --ranks {chosen.ranks}"
            raise ValueError(f"{option}: expected data × pipeline × model, {what}, got none")
    if wanted.get("lost") == "go-on" and chosen.virtual:
        raise ValueError("--lost: expected go-on without --virtual, got both")
    return lambda comm: way(comm, **wanted)
