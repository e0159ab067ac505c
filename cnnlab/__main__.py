"""The command line: `python -m cnnlab machine`, `train`, `bench` and `plan`."""

from cnnlab.ranks import job

if __name__ == "__main__":
    job.end_when_interrupted()  # while the modules below are imported, too

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from threadpoolctl import threadpool_limits

from cnnlab.distributed import METHODS, options
from cnnlab.kernels import KERNELS, find
from cnnlab.network import NETWORKS
from cnnlab.runtime import failures, thread_pool
from cnnlab.runtime.arguments import parse_positive, parse_several, parse_whole
from cnnlab.runtime.files import check_writable
from cnnlab.training import BATCH, OPTIMIZERS, check_batch_size

MANY = 10_000  # images: an epoch of fewer teaches a network little
MOST_VIRTUAL = 4096  # ranks, each with a copy of the network: a step of so many takes seconds


class CommandLine(argparse.ArgumentParser):
    """A parser that answers a mistake with one line and exit status 2."""

    def error(self, message: str):
        self.exit(2, f"{self.prog}: {message}\n" if job.is_first() else None)


def main(words: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    chosen = parser().parse_args(words)
    try:
        failures.stop_by_exception()
        if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
            raise ValueError("NUMBA_DISABLE_JIT: expected 0, as an epoch in Python takes hours")
        if empty := [name for name, value in vars(chosen).items() if value == ""]:
            raise ValueError(f"--{empty[0].replace('_', '-')}: expected a value, got ''")
        if "numba" not in sys.modules:  # once Numba is imported, its pool of threads cannot grow
            most = 4 * thread_pool.usable_cores() if getattr(chosen, "sweep", False) else 1
            thread_pool.reserve(max(most, getattr(chosen, "threads", None) or 1))
        with threadpool_limits(1, user_api="blas"):  # NumPy's products take one core, too
            status = chosen.command(chosen)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader of the output has closed it, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except failures.MENDABLE as problem:
        if chosen.debug:
            raise
        if job.is_first():
            print(f"cnnlab: {failures.one_line(problem)}", file=sys.stderr)
        return failures.status(problem)
    except KeyboardInterrupt:
        if job.is_first():
            print("cnnlab: stopped", file=sys.stderr)
        return 130


def parser() -> CommandLine:
    """The parser of the whole command line."""
    top = CommandLine(
        prog="python -m cnnlab",
        description="A small convolutional network, trained and timed with every strategy.",
    )
    names = "machine | train | bench | plan"
    commands = top.add_subparsers(title="commands", required=True, metavar=names)

    def add(name: str, command: Callable, summary: str) -> CommandLine:
        described = {"help": summary, "description": f"{summary[0].upper()}{summary[1:]}."}
        added = commands.add_parser(name, usage="%(prog)s [options]", **described)
        added.set_defaults(command=command)
        return added

    add("machine", show_machine, "describe this computer, measure its ceilings")
    add_train_options(add("train", train, "train the network"))
    add_bench_options(add("bench", bench, "time an epoch and each operation, by strategy"))
    planning = add("plan", plan, "what a step of each method would take, send and hold; best first")
    add_plan_options(planning)
    for command in commands.choices.values():
        command.add_argument("--json", action="store_true", help="print a line of JSON at the end")
        command.add_argument("--debug", action="store_true", help="show the traceback of a failure")
    return top


def add_train_options(command: CommandLine) -> None:
    """Add the options of `train`."""
    option = command.add_argument_group("the training").add_argument
    option("--kernels", metavar="NAME", help=f"{', '.join(KERNELS)} (default: vector)")
    option("--network", default="report", choices=NETWORKS, help="(default: report)")
    what = f"epochs in all (default: 1, or 10 where there are fewer than {MANY:,} images)"
    option("--epochs", type=parse_whole, metavar="N", help=what)
    algorithms = "; ".join(f"{way.name}: {way.summary}" for way in OPTIMIZERS.values())
    option("--optimizer", default="sgd", choices=OPTIMIZERS, help=f"(default: sgd) {algorithms}")
    usual = ", ".join(f"{way.load().usual} of {way.name}" for way in OPTIMIZERS.values())
    what = f"learning rate (default: {usual}; in proportion, where the network has its own)"
    option("--rate", type=parse_positive, metavar="R", help=what)
    what = "of the initial parameters and the order of the images (default: 0)"
    option("--seed", type=int, default=0, metavar="N", help=what)
    what = f"images per step (default: {BATCH})"
    option("--batch", type=parse_whole, default=BATCH, metavar="N", help=what)
    add_data_options(command, None)
    options.add_options(command)
    option = command.add_argument_group("checkpoints").add_argument
    option("--save", metavar="FILE", help="write a checkpoint after every epoch")
    option("--resume", metavar="FILE", help="continue from a checkpoint, up to --epochs")


def add_bench_options(command: CommandLine) -> None:
    """Add the options of `bench`."""
    option = command.add_argument
    fast = ",".join(strategy.name for strategy in KERNELS.values() if strategy.by_default)
    what = f"strategies, separated by commas (default: {fast})"
    option("--kernels", default=fast, metavar="NAMES", help=what)
    option("--network", default="report", choices=NETWORKS, help="(default: report)")
    option("--against", choices=["torch"], help="also time PyTorch, in the same run")
    option("--record", metavar="FOLDER", help="write the report, a page and a plot to a folder")
    what = "also time `threads` on one thread, two, and so on to four times the cores"
    option("--sweep", action="store_true", help=what)
    what = "samples of each time (default: 11)"
    option("--repeats", type=parse_whole, default=11, metavar="N", help=what)
    what = "fresh processes in which steps are timed, one after the other (default: 5)"
    option("--processes", type=parse_whole, default=5, metavar="N", help=what)
    what = "images per step; several are measured one after the other (default: 64)"
    option("--batch", type=parse_several, default=[64], metavar="N[,N]", help=what)
    add_data_options(command, 8192)


def add_plan_options(command: CommandLine) -> None:
    """Add the options of `plan`."""
    option = command.add_argument
    option("-n", "--ranks", type=parse_whole, default=4, metavar="N", help="(default: 4)")
    option("--batch", type=parse_whole, default=64, metavar="N", help="of all ranks (default: 64)")
    option("--network", choices=NETWORKS, default="report", help="(default: report)")
    what = "between ranks; here: as measured between two ranks of this machine"
    option("--link", default=options.LINK, metavar="L,B", help=f"{what} (default: {options.LINK})")
    what = "methods and their options, separated by commas, such as"
    what += ' "data --compress fp16, hybrid --grid 2x2x1" (default: every method)'
    option("--methods", metavar="NAMES", help=what)
    what = "kernels cost what a model says, the same each time, in place of what they take here"
    option("--model", action="store_true", help=what)


def add_data_options(command: CommandLine, images: int | None) -> None:
    """Add the options that `train` and `bench` share."""
    option = command.add_argument_group("data and threads").add_argument
    what = "mnist, fashion, digits, or auto: mnist if available, else digits (default: auto)"
    option("--data", default="auto", metavar="NAME", help=what)
    what = f"use only the first N training images (default: {images or 'all'})"
    option("--images", type=parse_whole, default=images, metavar="N", help=what)
    what = "threads of a parallel strategy (default: one per core)"
    option("--threads", type=parse_whole, metavar="N", help=what)


def show_machine(chosen) -> int:
    """Print the facts about this machine and the two ceilings of its roofline."""
    from cnnlab.measure import machine

    peak, bandwidth = machine.float32_peak(), machine.memory_bandwidth()
    if chosen.json:
        print(json.dumps(machine.describe() | {"float32_peak": peak, "bandwidth": bandwidth}))
    else:
        print(f"{machine.summary()}\none core   {peak / 1e9:.0f} GFLOP/s (float32),", end=" ")
        print(f"{bandwidth / 1e9:.1f} GB/s, measured")
    return 0


def train(chosen) -> int:
    """Train, alone or on several ranks, real or virtual."""
    from cnnlab.data import load

    if chosen.virtual:
        if job.started() > 1:
            raise ValueError(f"--virtual: expected one process, got {job.started()} under mpiexec")
        if chosen.virtual > MOST_VIRTUAL:
            raise ValueError(f"--virtual: expected at most {MOST_VIRTUAL:,}, got {chosen.virtual}")
        return train_virtually(chosen, load(chosen.data, chosen.images))
    if chosen.link:
        raise ValueError(f"--link: expected --virtual with it, got {chosen.link} without")
    if not chosen.ranks:
        if job.started() > 1:
            known = f"one of {', '.join(METHODS)} under mpiexec"
            alone = f"or each of the {job.started()} ranks would train alone"
            raise ValueError(f"--ranks: expected {known}, {alone}")
        return train_with(options.method(chosen)(None), chosen, load(chosen.data, chosen.images))
    method = options.method(chosen)  # or what does not go together, before there are ranks
    if chosen.lost == "go-on":
        job.begin()
    with job.together(chosen.debug) as comm:
        return train_with(method(comm), chosen, load(chosen.data, chosen.images))


def train_virtually(chosen, data) -> int:
    """Train on virtual ranks, all in this process; the seconds told are those of their clocks."""
    from cnnlab.ranks.virtual import World

    method = options.method(chosen)
    options.refuse_compiled(chosen)
    world = World(chosen.virtual, options.link(chosen), measured=True)
    print(f"{world.size} virtual ranks, {world.network}: seconds are of their clocks")
    with failures.telling("ranks take turns: an epoch takes as long as all of them", after=5):
        return max(world.run(lambda comm: train_with(method(comm), chosen, data)))


def train_with(method, chosen, data) -> int:
    """Train with a method; rank 0 prints a line for each epoch and, with --json, a summary."""
    from cnnlab import training

    strategy = find(chosen.kernels or method.kernels or "vector")
    if method.kernels not in (None, strategy.name):
        raise ValueError(
            f"--kernels: expected {method.kernels} with --ranks {chosen.ranks}, got {strategy.name}"
        )
    n_threads = job.threads_for([strategy], chosen.threads)
    if method.rank == 0 and (hardware := strategy.optional("hardware")):
        print(hardware())
    result = training.train(
        data,
        strategy,
        network=NETWORKS[chosen.network],
        epochs=chosen.epochs or (1 if len(data.train_images) >= MANY else 10),
        batch=chosen.batch,
        rate=chosen.rate,
        optimizer=chosen.optimizer,
        seed=chosen.seed,
        n_threads=n_threads,
        method=method,
        save=chosen.save,
        resume=chosen.resume,
        progress=None if method.rank == 0 else False,
        tell=show_epoch if method.rank == 0 else lambda row: None,
    )
    method.close()
    if method.rank == 0 and result.history[-1]["test_accuracy"] <= training.loop.guessing(data):
        print("no better than guessing: lower --rate, or train for more --epochs", flush=True)
    for problem in result.unsaved:
        print(f"cnnlab: --save: {problem}", file=sys.stderr)
    if chosen.json and method.rank == 0:
        from cnnlab.measure.machine import describe

        history, n_images = result.history, len(data.train_images)
        seconds = sum(row["seconds"] for row in history) / len(history)
        facts = {"kernels": strategy.name, "n_threads": n_threads}
        facts |= {"method": chosen.ranks or "alone", "n_ranks": method.size}
        facts |= {"virtual": bool(chosen.virtual), "link": options.link(chosen)}
        facts |= {"network": chosen.network, "optimizer": chosen.optimizer, **options.given(chosen)}
        facts |= {"data": data.name, "n_images": n_images, "batch": chosen.batch}
        facts |= {"epochs": len(history), "seconds_per_epoch": seconds}
        facts |= {"images_per_second": n_images / seconds, "train_loss": history[-1]["loss"]}
        facts |= {"test_accuracy": history[-1]["test_accuracy"], "history": history}
        print(json.dumps(facts | {"machine": describe()}))
    return method.leave(1 if result.unsaved else 0)


def show_epoch(row: dict) -> None:
    """Print a row of a training's history."""
    learned = f"loss {row['loss']:.3f}, test accuracy {row['test_accuracy']:.2%}"
    took = f"{row['seconds']:.2f} s, {row['images_per_second']:,.0f} images/s"
    print(f"epoch {row['epoch']}: {learned}, {took}", flush=True)


def bench(chosen) -> int:
    """Measure the strategies and print the tables."""
    from cnnlab import measure
    from cnnlab.data import load

    if chosen.against and importlib.util.find_spec(chosen.against) is None:
        installed = f"{chosen.against} to be installed: pip install {chosen.against}"
        raise ValueError(f"--against: expected {installed}")
    names = [find(name).name for name in chosen.kernels.split(",")]
    n_threads = job.threads_for([KERNELS[name] for name in names], chosen.threads)
    data = load(chosen.data, chosen.images)
    if chosen.sweep and chosen.network != "report":
        raise ValueError(f"--sweep: expected --network report with it, got {chosen.network}")
    check_batch_size(data, max(chosen.batch))
    if folder := chosen.record and Path(chosen.record):
        folder.mkdir(parents=True, exist_ok=True)
        check_writable("--record", folder / "bench.json")
    reports, status = [], 0
    plan = {"n_threads": n_threads, "against": chosen.against, "processes": chosen.processes}
    for batch in chosen.batch:
        how = {"batch": batch, "repeats": chosen.repeats}
        report = measure.run(names, data, network=chosen.network, **plan, **how)
        print("\n" * bool(reports) + measure.table(report))
        reports.append(report)
        if chosen.sweep:
            from cnnlab.measure import scaling

            report["sweep"] = scaling.run(data, **how)
            print("\n" + scaling.table(report["sweep"]))
        if folder:
            status |= record(report, folder)
    if chosen.json:
        print(json.dumps(reports if len(reports) > 1 else report))
    return status


def record(report: dict, folder: Path) -> int:
    """Write a report of `bench`, its page and its plot to a folder; the exit status."""
    from cnnlab.measure import bench
    from cnnlab.plots.charts import draw

    try:
        path = bench.keep(report, folder)
        path.with_suffix(".txt").write_text(bench.page(report), encoding="utf-8")
        draw(report, path.with_suffix(".png"))
        print("recorded in", path)
    except OSError as problem:
        print(f"cnnlab: --record: {problem}", file=sys.stderr)
        return 1
    return 0


def plan(chosen) -> int:
    """Print what a step of each method would take, send and hold."""
    from cnnlab.measure import planner
    from cnnlab.ranks.virtual.network import network_of

    link = chosen.link
    if link == "here":
        from cnnlab.ranks.cluster import cluster, find_mpiexec

        if not find_mpiexec():
            raise ValueError("--link: expected a link by name, as there is no mpiexec, got 'here'")
        with cluster(2) as ranks:
            link = ranks.run(planner.link_here)[0]
    how = {"network": chosen.network, "n_ranks": chosen.ranks, "batch": chosen.batch}
    variants = [v.strip() for v in (chosen.methods or "").split(",") if v.strip()]
    for variant in variants:
        planner.options_of(variant)  # before anything is measured
    where = network_of(link, chosen.ranks)
    cost = planner.modelled if chosen.model else planner.Measured()
    planned, refused = planner.plans(variants, link=where, cost=cost, **how)
    print(f"{chosen.ranks} ranks, {where}, batches of {chosen.batch}: a step of {chosen.network}")
    print(planner.table(planned, refused))
    if chosen.json:
        rows = [asdict(one) | {"images_per_second": one.images_per_second} for one in planned]
        print(json.dumps(how | {"link": str(where), "plans": rows, "refused": refused}))
    return 0


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="replace")  # a terminal that knows ASCII alone gets ? for µ
    sys.exit(main())
