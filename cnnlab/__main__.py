"""The command line: `python -m cnnlab machine`, `train` and `bench`."""

import argparse
import importlib.util
import json
import os
import sys
from pathlib import Path

from cnnlab.distributed import METHODS
from cnnlab.network import NETWORKS
from cnnlab.runtime import thread_pool


class Parser(argparse.ArgumentParser):
    """A parser that answers a mistake with one line and exit status 2."""

    def error(self, message: str):
        self.exit(2, f"{self.prog}: {message}\n")


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return its exit status."""
    chosen = parser().parse_args(arguments)
    try:
        if "numba" not in sys.modules:  # as on the command line; later is too late
            most = 4 * thread_pool.usable_cores() if getattr(chosen, "sweep", False) else 1
            thread_pool.reserve(max(most, getattr(chosen, "threads", None) or 1))
        status = chosen.command(chosen)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # whoever reads the output has seen enough, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except ValueError as problem:
        print(f"cnnlab: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("cnnlab: stopped", file=sys.stderr)
        return 130


def parser() -> Parser:
    """The parser of the whole command line."""
    top = Parser(prog="python -m cnnlab", description="Parallelizing a convolutional network.")
    commands = top.add_subparsers(required=True, metavar="machine | train | bench")

    one = commands.add_parser("machine", help="what this computer is, and its measured ceilings")
    one.set_defaults(command=show_machine)

    two = commands.add_parser("train", help="train the network, one epoch or more")
    two.set_defaults(command=train)
    two.add_argument("--kernels", help="a strategy (default: vector)")
    two.add_argument("--network", default="report", choices=NETWORKS, help="(default: report)")
    two.add_argument("--epochs", type=whole, default=1, metavar="E")
    two.add_argument("--rate", type=positive, metavar="R", help="learning rate, for mean gradients")
    two.add_argument("--seed", type=int, default=0, help="of the parameters and the shuffling")
    two.add_argument(
        "--ranks",
        choices=METHODS,
        help="under mpiexec: " + "; ".join(f"{m.name}, {m.summary}" for m in METHODS.values()),
    )
    two.add_argument("--save", metavar="FILE", help="write a checkpoint there after every epoch")
    two.add_argument("--resume", metavar="FILE", help="go on from a checkpoint, up to E epochs")

    three = commands.add_parser("bench", help="seconds per epoch of the strategies, and by layer")
    three.set_defaults(command=bench)
    three.add_argument("--kernels", help="strategies, separated by commas (default: the fast ones)")
    three.add_argument("--against", choices=["torch"], help="measure PyTorch too, in the same run")
    three.add_argument("--record", metavar="FOLDER", help="keep the figures and a plot there")
    three.add_argument(
        "--sweep", action="store_true", help="also time `threads` on 1 to 4 times as many as cores"
    )
    three.add_argument("--repeats", type=whole, default=11, help="samples of each (default: 11)")

    for command in (two, three):
        command.add_argument("--data", default="auto", help="mnist, fashion, digits or auto")
        command.add_argument("--batch", type=whole, metavar="N", help="images a step")
        command.add_argument("--threads", type=whole, metavar="T", help="of parallel strategies")
        command.add_argument(
            "--images", type=whole, metavar="N", help="use the first N images only"
        )
    for command in (one, two, three):
        command.add_argument("--json", action="store_true", help="end with one line of JSON")
    return top


def whole(text: str) -> int:
    """A whole number of at least 1, or argparse's error."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return int(text)


def positive(text: str) -> float:
    """A positive finite number, or argparse's error."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a positive number, got {text!r}")
    return number


def show_machine(chosen) -> int:
    """Print what the machine is and the two ceilings of its roofline."""
    from cnnlab.bench import machine

    peak, bandwidth = machine.float32_peak(), machine.memory_bandwidth()
    if chosen.json:
        print(json.dumps(machine.describe() | {"float32_peak": peak, "bandwidth": bandwidth}))
    else:
        print(machine.summary())
        print(
            f"one core   {peak / 1e9:.0f} GFLOP/s (float32), {bandwidth / 1e9:.1f} GB/s, measured"
        )
    return 0


def train(chosen) -> int:
    """Train, show each epoch, and sum up."""
    if not chosen.ranks:
        from cnnlab.training import Method

        return train_on(Method(), chosen)
    from cnnlab.ranks import job

    with job.together() as comm:
        return train_on(METHODS[chosen.ranks].load()(comm), chosen)


def train_on(method, chosen) -> int:
    """`train` on the ranks that take part."""
    from cnnlab import kernels, training
    from cnnlab.bench import machine
    from cnnlab.data import load

    strategy = kernels.find(chosen.kernels or method.kernels or "vector")
    if method.kernels not in (None, strategy.name):
        raise ValueError(
            f"--kernels: expected {method.kernels} with --ranks {chosen.ranks}, got {strategy.name}"
        )
    n_threads = threads_for([strategy], chosen.threads)
    data = load(chosen.data, chosen.images)
    batch = chosen.batch or training.BATCH
    if hardware := strategy.optional("hardware"):
        print(hardware())
    result = training.train(
        data,
        strategy,
        network=NETWORKS[chosen.network],
        epochs=chosen.epochs,
        batch=batch,
        rate=chosen.rate or training.RATE,
        seed=chosen.seed,
        n_threads=n_threads,
        method=method,
        save=chosen.save,
        resume=chosen.resume,
        progress=None if method.rank == 0 else False,
    )
    for row in result.history:
        print(
            f"epoch {row['epoch']}: loss {row['loss']:.3f}, test accuracy "
            f"{row['test_accuracy']:.2%}, {row['seconds']:.2f} s, "
            f"{row['images_per_second']:,.0f} images/s"
        )
    if chosen.json:
        seconds = sum(row["seconds"] for row in result.history) / len(result.history)
        summary = {
            "kernels": strategy.name,
            "n_threads": n_threads,
            "method": chosen.ranks or "alone",
            "n_ranks": method.size,
            "network": chosen.network,
            "data": data.name,
            "n_images": len(data.train_images),
            "batch": batch,
            "epochs": chosen.epochs,
            "seconds_per_epoch": seconds,
            "images_per_second": len(data.train_images) / seconds,
            "train_loss": result.history[-1]["loss"],
            "test_accuracy": result.history[-1]["test_accuracy"],
            "history": result.history,
            "machine": machine.describe(),
        }
        print(json.dumps(summary))
    return 0


def bench(chosen) -> int:
    """Measure the strategies and print the table, or JSON."""
    from cnnlab import bench as benchmark
    from cnnlab.data import load
    from cnnlab.kernels import KERNELS, find

    if chosen.against and importlib.util.find_spec(chosen.against) is None:
        raise ValueError(f"--against {chosen.against}: not installed; pip install {chosen.against}")
    names = [strategy.name for strategy in KERNELS.values() if strategy.by_default]
    if chosen.kernels:
        names = [find(name).name for name in chosen.kernels.split(",")]
    n_threads = threads_for([KERNELS[name] for name in names], chosen.threads)
    data = load(chosen.data, chosen.images or 8192)
    batch = chosen.batch or 64
    if batch > len(data.train_images):
        raise ValueError(f"--batch: at most the {len(data.train_images)} images, got {batch}")
    report = benchmark.run(
        names,
        data,
        batch=batch,
        n_threads=n_threads,
        against=chosen.against,
        repeats=chosen.repeats,
    )
    print(benchmark.table(report))
    if chosen.sweep:
        from cnnlab.bench import thread_scaling

        report["sweep"] = thread_scaling.run(data, batch=batch, repeats=chosen.repeats)
        print("\n" + thread_scaling.table(report["sweep"]))
    if chosen.record:
        from cnnlab.bench import records
        from cnnlab.show.report import draw

        folder = Path(chosen.record)
        print("recorded in", records.keep(report, folder))
        draw(report, folder / "speedup.png")
    if chosen.json:
        print(json.dumps(report))
    return 0


def threads_for(strategies, asked: int | None) -> int:
    """How many threads to use: those asked for, else one for each core where a strategy can."""
    parallel = any(strategy.parallel for strategy in strategies)
    if asked is not None and asked > 1 and not parallel:
        names = ", ".join(strategy.name for strategy in strategies)
        raise ValueError(f"--threads {asked}: {names} runs on one thread; use --threads 1")
    return asked or (min(thread_pool.size(), thread_pool.usable_cores()) if parallel else 1)


if __name__ == "__main__":
    sys.exit(main())
