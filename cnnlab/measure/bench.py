"""Times of training steps, epochs and operations by contestants that alternate; reports of them."""

import functools
import json
import multiprocessing
import re
import signal
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np

from cnnlab import cuda
from cnnlab.cuda.step import Call, OnDevice
from cnnlab.kernels import BASE, CONTRACT, KERNELS, Strategy
from cnnlab.kernels.composition import loss_and_gradients
from cnnlab.kernels.contract import STRIDES
from cnnlab.measure import machine, timing
from cnnlab.measure.timing import Timing, pooled
from cnnlab.network import NETWORKS, Network, Parameters, Place
from cnnlab.runtime import arguments, thread_pool
from cnnlab.runtime.arguments import Entry, find, listed, one_of
from cnnlab.runtime.files import replacing
from cnnlab.training import Method, Replica, Sgd, check_batch_size

REPORT, BATCH = "report", 64  # what is measured unless another network or batch is named
NETWORK = NETWORKS[REPORT]


class Contestant:
    """A strategy that trains a network: `steps()` makes its next `n_steps` steps.

    A step is forward, backward and update on one batch; `step_times` gives the time of one. A
    strategy that is not parallel runs on one thread, whatever `n_threads` says.
    """

    def __init__(self, strategy: Strategy, data, batch: int, n_threads: int = 1, network=NETWORK):
        self.strategy, self.batch = strategy, batch
        self.n_threads = n_threads if strategy.parallel else 1
        params = network.parameters(0, strategy.dtype)
        images, labels = data.train_images, data.train_labels
        self.method = Method()
        self.replica = Replica(strategy, params, images, labels, batch, Sgd(network.usual_rate))
        self.n_steps = self.method.images_in_a_row(self.replica) // batch
        shuffled, self.position = np.random.default_rng(0).permutation(len(labels)), 0
        self.order = np.resize(shuffled, max(len(shuffled), self.n_steps * batch))

    @property
    def hardware(self) -> str | None:
        """The name of the processor or device; None if unknown."""
        return machine.describe()["cpu"]

    def next_batches(self) -> np.ndarray:
        """The image numbers of the next `n_steps` batches, from the start again after the last."""
        several = self.n_steps * self.batch
        if self.position + several > len(self.order):
            self.position = 0
        self.position += several
        return self.order[self.position - several : self.position]

    def steps(self) -> None:
        """Make the next `n_steps` training steps."""
        self.train(self.next_batches())

    def train(self, order: np.ndarray) -> None:
        """Train on the images numbered in `order`, a batch at a time."""
        with thread_pool.threads(self.n_threads):
            self.method.steps(self.replica, order)

    def gradients(self, x: np.ndarray, labels: np.ndarray) -> Parameters:
        """Gradients of a batch, summed over its images, at the current parameters."""
        with thread_pool.threads(self.n_threads):
            loss_and_gradients(self.strategy, self.replica.params, x, labels, self.replica.grads)
        return self.replica.grads

    def check(self) -> None:
        """Raise AssertionError unless gradients and a step agree with the reference."""
        params, name = self.replica.params, self.strategy.name
        x, labels = self.replica.images[: self.batch], self.replica.labels[: self.batch]
        exact = exact_gradients(params, x, labels)
        timing.same(self.gradients(x, labels).flat, exact.flat, name=f"gradients of {name}")
        expected = params.flat - params.network.usual_rate / len(x) * exact.flat
        self.train(np.arange(len(x)))
        timing.same(params.flat, expected, name=f"parameters after a step of {name}")


def exact_gradients(params: Parameters, x: np.ndarray, labels: np.ndarray) -> Parameters:
    """Gradients of a batch, summed over its images, by the reference in float64."""
    wide, grads = params.network.zeros(np.float64), params.network.zeros(np.float64)
    wide.flat[:] = params.flat
    loss_and_gradients(KERNELS["reference"], wide, x.astype(np.float64), labels, grads)
    return grads


# --- single operations at a network's sizes, each checked before it is timed ----------------------

PEAK, ALONE, TOGETHER = "peak", "one on its own", "one a core"  # timed beside contestants
LAYERS = {"conv": "convolution", "pool": "pooling", "dense": "fully connected"}


def layers(names: Sequence[str], batch: int, repeats: int, network=NETWORK) -> dict[str, dict]:
    """Times of a step's operations by each strategy, alternated: operation → strategy → Timing.

    Seconds for a batch; of PEAK, those of one multiply-add at the peak of one core.
    """
    sweep, work = machine.peak_sweep()
    result = {}
    for operation in operations(network):
        calls = {name: layer_call(name, operation, batch, network) for name in names}
        timings = timing.compare(calls | {PEAK: sweep}, repeats=repeats)
        result[operation] = timings | {PEAK: scaled(timings[PEAK], 2 / work)}
    return result


def operations(network: Network, needed: bool = True) -> dict[str, tuple[str, Place]]:
    """A network's operations by name, such as conv2_forward: that of the contract, and the layer.

    Elementwise ones are there once, for the first layer that has them: "relu". Those that no step
    calls, such as the gradient of the images, are there unless only the `needed` ones are wanted.
    """
    work, result = network.multiply_adds, {}
    above = network.places[network.first_learned + 1 : -1]
    for operation in CONTRACT:
        kind, part = re.fullmatch("(.+?)((?:_forward|_backward).*)?", operation).groups("")
        for place in (place for place in network.places if place.layer.operation == kind):
            name = (kind if place.layer.elementwise else place.name) + part
            called = part in ("", "_forward") or (part == "_backward" and place in above)
            if called or not needed or name.replace("_bias", "_weights") in work:
                result.setdefault(name, (operation, place))
    return result | {"cross_entropy": ("cross_entropy", network.places[-1])}


def shapes(operation: str, batch: int, network=NETWORK) -> dict[str, tuple[int, ...]]:
    """Argument shapes of one of a network's `operations`, by argument."""
    known = operations(network, needed=False)
    one_of("operation", operation, known)
    operation, place = known[operation]
    sizes = {"N": batch, "D": prod(place.input_shape), "O": prod(place.shape)}
    if len(place.shape) == 3:
        letters = "CHWFPQ" if operation.startswith("conv") else "CHWCPQ"
        sizes |= zip(letters, place.input_shape + place.shape, strict=True)
        if operation.startswith("max_pool") and not place.layer.side_by_side:
            sizes |= zip("HW", (n * place.layer.size for n in place.shape[1:]), strict=True)
        sizes["K"] = vars(place.layer).get("kernel") or vars(place.layer).get("size")
    return {
        name: (batch, *place.shape) if letters == "..." else tuple(sizes[i] for i in letters)
        for name, letters in CONTRACT[operation].items()
    }


def layer_call(name: str, operation: str, batch: int, network=NETWORK) -> Callable[[], object]:
    """A checked call of one operation by a strategy, at the network's sizes."""
    strategy = KERNELS[name]
    arrays, options = layer_arguments(operation, batch, strategy.dtype, network)
    operation, _ = operations(network, needed=False)[operation]
    checked(operation, name, getattr(strategy, operation), arrays, options)
    kernel = strategy.kernel(operation)
    if on_device := strategy.optional("on_device"):  # a GPU is timed without copies
        arrays = [on_device(a) for a in arrays]
    return lambda: kernel(*arrays, *options)


def layer_arguments(operation: str, batch: int, dtype=np.float32, network=NETWORK) -> tuple:
    """Random arrays for an operation at the network's sizes, and the stride if it takes one."""
    rng = np.random.default_rng(0)
    arrays = [
        rng.integers(0, network.classes, shape)
        if argument == "labels"
        else rng.uniform(0.02, 0.98, shape).astype(dtype)
        for argument, shape in shapes(operation, batch, network).items()
    ]
    operation, place = operations(network, needed=False)[operation]
    return arrays, (place.layer.arguments or (1,)) if operation in STRIDES else ()


def checked(operation: str, name: str, kernel: Callable, arrays: list, options: tuple) -> None:
    """Run a kernel once; raise AssertionError unless the last array is as in the reference."""
    exact = [a if a.dtype.kind == "i" else a.astype(np.float64) for a in arrays]
    getattr(KERNELS["reference"], operation)(*exact, *options)
    kernel(*arrays, *options)
    timing.same(arrays[-1], exact[-1], name=f"{operation} of {name}")


class Resident:
    """A way to train on the device: `steps()` makes its next `n_steps` steps and waits for them.

    `call` makes `n_calls` of them. On a GPU `n_steps` are an epoch, as each wait costs a step.
    """

    n_threads = 1

    def __init__(self, step: OnDevice, call: Call, n_calls: int, data):
        self._step, self._call, self._data = step, call, data
        self.batch, self.hardware = step.batch, cuda.where()
        self._n_calls = n_calls
        self._calls = step.steps_an_epoch // n_calls if cuda.gpu()[0] else 1
        self.n_steps = self._calls * n_calls

    def steps(self) -> None:
        """Make the next `n_steps` training steps."""
        for _ in range(self._calls):
            self._call()
        cuda.wait()

    def check(self) -> None:
        """Raise AssertionError unless gradients agree with the reference, and a call with steps."""
        step = self._step
        step.start(range(len(self._data.train_images)))
        x, labels = self._data.train_images[: self.batch], self._data.train_labels[: self.batch]
        exact = exact_gradients(step.parameters(), x.astype(np.float32), labels)
        with step.undone():
            step()
            cuda.wait()
            timing.same(step.gradients().flat, exact.flat, name="gradients on the device")
            for _ in range(self._n_calls - 1):
                step()
            expected = step.parameters().flat
        with step.undone():
            self._call()
            timing.same(step.parameters().flat, expected, name="parameters on the device")


# --- times of whole training steps and epochs, with all contestants alternating in one run --------

EPOCH = 60_000  # images
FLOPS = 2 * sum(Network().multiply_adds.values()) * EPOCH  # an epoch's multiply-adds alone
PEERS = listed(Entry("torch", "PyTorch, on a GPU too", "cnnlab.measure.torch_peer:peers"))


def contestants(
    names: Sequence[str], data, batch: int, n_threads: int, against: str | None, network=NETWORK
) -> dict[str, Contestant | Resident]:
    """Contestants by name: one for each of KERNELS in `names`, and the peer `against`, or None.

    A strategy that keeps the network's data on the device has one for each way to launch a step.
    """
    outcome = {}
    for strategy in (KERNELS[name] for name in names):
        if resident_steps := strategy.fused("resident_steps", network):
            params, data_set = network.parameters(0), (data.train_images, data.train_labels)
            algorithms = resident_steps(params, *data_set, batch=batch, rate=network.usual_rate)
            outcome |= {name: Resident(*way, data) for name, way in algorithms.items()}
        else:
            outcome[strategy.name] = Contestant(strategy, data, batch, n_threads, network)
    if against is not None:
        outcome |= find("against", against, PEERS)(data, batch, n_threads, network)
    return outcome


def step_times(
    outcome: dict[str, Contestant | Resident],
    *,
    others: dict[str, Callable[[], object]] | None = None,
    repeats: int = 11,
    min_time: float = 0.1,
) -> dict[str, Timing]:
    """The time of one training step by each contestant; all are checked before any is timed.

    `others` are calls to time in the same run: a processor changes its clock from run to run.
    """
    timings = timing.compare(
        {name: one.steps for name, one in outcome.items()} | (others or {}),
        checks={name: one.check for name, one in outcome.items()},
        repeats=repeats,
        min_time=min_time,
    )
    n_steps = {name: one.n_steps for name, one in outcome.items()}
    return {name: scaled(timing, 1 / n_steps.get(name, 1)) for name, timing in timings.items()}


def scaled(timing: Timing, factor: float) -> Timing:
    """A timing with every sample multiplied by `factor`."""
    return replace(timing, samples=tuple(factor * s for s in timing.samples))


def epochs(
    outcome: dict[str, Contestant | Resident], batch: int, repeats: int, **how
) -> dict[str, Timing]:
    """The time of an epoch of 60,000 images by each contestant; `how` is as in `step_times`."""
    timings = step_times(outcome, repeats=repeats, **how)
    return {name: scaled(timing, EPOCH / batch) for name, timing in timings.items()}


# --- networks that have nothing in common, one a core: what no parallel program can pass ----------

N_STEPS = 128  # of each call: enough that starting the threads does not count


class OnTheirOwn:
    """Threads that each train a network of their own with `vector`, as long as `one` would alone.

    Called with their number. If several take longer than one, cores are shared, or share something.
    """

    def __init__(self, one: Contestant, n_threads: int):
        self.threads, group = ThreadPoolExecutor(n_threads), one.replica
        held = group.images, group.labels, group.batch, group.optimizer
        self.loops = [
            Replica(group.strategy, group.params.copy(), *held).loop() for _ in range(n_threads)
        ]
        self.order = np.resize(one.order, N_STEPS * one.batch)

    def __call__(self, n_threads: int) -> None:
        for _ in self.threads.map(lambda loop: loop(self.order), self.loops[:n_threads]):
            pass


# --- reports of `bench` as files, one for each machine --------------------------------------------

PACKAGE = Path(__file__).resolve().parents[1]
PACKED = PACKAGE / "data" / "measurements"  # there in a wheel of `make zip`
MEASUREMENTS = PACKED if PACKED.is_dir() else PACKAGE.parent / "data" / "measurements"


def keep(report: dict, folder: Path) -> Path:
    """Write a report of `bench.run` to bench-<processor>-<vectors>.json in a folder; the path.

    The folder is created if it does not exist. The same processor, told to use narrower vectors,
    has a report of its own; so have networks and batches other than the usual.
    """
    folder.mkdir(parents=True, exist_ok=True)
    hardware = f"{report['machine']['cpu']} {vectors(report)}"
    if cuda.gpu()[0]:
        hardware += f" {cuda.where()}"
    row = report["results"][0]
    network, batch = row.get("network", REPORT), row.get("batch", BATCH)
    hardware += f" {network}" * (network != REPORT) + f" batch {batch}" * (batch != BATCH)
    hardware = re.sub(r"\W+", "-", hardware.lower()).strip("-")
    path = folder / f"bench-{hardware}.json"
    with replacing(path) as file:
        file.write((json.dumps(report, indent=1) + "\n").encode())
    return path


def vectors(report: dict) -> str:
    """The vectors of a report's machine, such as "AVX2"; "" where they are unknown."""
    return str(report["machine"]["simd"] or "").partition(",")[0]


# --- epochs timed in fresh processes, one process after the other ---------------------------------


def fresh_epochs(processes: int, *plan) -> tuple[dict[str, Timing], dict[str, dict]]:
    """What `in_this_process` returns, over that many fresh processes; with one, it is this one."""
    if processes == 1:
        return in_this_process(*plan)
    outcome = []
    for _ in range(processes):
        with ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_DFL)
        ) as one:
            outcome.append(one.submit(in_this_process, *plan).result())
    timings, facts = zip(*outcome, strict=True)
    return {name: pooled([one[name] for one in timings]) for name in timings[0]}, facts[0]


def in_this_process(
    names: Sequence[str], data, batch: int, n_threads: int, against, repeats: int, network=NETWORK
) -> tuple[dict[str, Timing], dict[str, dict]]:
    """The time of an epoch by each of the `contestants`, all alternating; facts about each.

    Beside them: PEAK, an epoch's multiply-adds at one core's peak; with several cores, if `vector`
    fuses the steps, networks of `OnTheirOwn`: one ALONE, and one a core, TOGETHER.
    """
    outcome = contestants(names, data, batch, n_threads, against, network)
    sweep, work = machine.peak_sweep()
    others, cores = {PEAK: sweep}, thread_pool.usable_cores()
    one = Contestant(KERNELS["vector"], data, batch, network=network)
    if cores > 1 and one.replica.loop() is not None:
        on_their_own = OnTheirOwn(one, cores)
        others |= {ALONE: functools.partial(on_their_own, 1)}
        others |= {TOGETHER: functools.partial(on_their_own, cores)}
    timings = epochs(outcome, batch, repeats, others=others)
    step = 2 * batch * sum(network.multiply_adds.values())
    facts = {k: {"n_threads": a.n_threads, "machine": a.hardware} for k, a in outcome.items()}
    return timings | {PEAK: scaled(timings[PEAK], step / work)}, facts


# --- the report of `python -m cnnlab bench`, as data and as text ----------------------------------

QUIET = 0.97  # of the speed of one network alone; below, cores are busy with something else


def run(
    names: Sequence[str],
    data,
    *,
    network: str = REPORT,
    batch: int = BATCH,
    n_threads: int = 1,
    against: str | None = None,
    repeats: int = 11,
    processes: int = 1,
) -> dict:
    """Measure strategies on this machine; return the report that `bench --json` prints.

    Its `results` hold a row for each contestant: seconds per epoch, GFLOP/s, the share of one
    core's measured peak, the speedup over `ratio_to`, the seconds of each operation, and what
    `of_peak` returns. Times and speedups come with intervals that hold for one process, or for as
    many fresh `processes`. `ratio_to` is PyTorch on the processor, in the faster of its layouts, if
    it is measured, else plain loops. `bound` is how fast each of the networks of `OnTheirOwn` is
    beside one alone, None without them; measured anew, once, where it is below QUIET.
    Raises ValueError for an unknown network, or if there are fewer images than a batch has.
    """
    one_of("network", network, NETWORKS)
    check_batch_size(data, batch)
    net = NETWORKS[network]
    flops = 2 * EPOCH * sum(net.multiply_adds.values())
    where = "in this process" if processes == 1 else f"in {processes} fresh processes"
    print(f"measuring whole steps {where}, then layers", file=sys.stderr)
    plan = processes, names, data, batch, n_threads, against, repeats, net
    timings, facts = fresh_epochs(*plan)
    if (bound := of_cores(timings)) and bound < QUIET:
        print(f"not quiet: {said(bound)}; measuring again", file=sys.stderr)
        again, facts = fresh_epochs(*plan)
        if of_cores(again) > bound:
            timings, bound = again, of_cores(again)
    peak = timings[PEAK]
    with thread_pool.threads(n_threads):
        by_layer = layers(names, batch, max(3, repeats // 2), net)
    here = machine.describe()
    peers = [name for name in facts if name not in names and facts[name]["machine"] == here["cpu"]]
    base = BASE if BASE in names else names[0]
    base = min(peers, key=lambda name: timings[name].median, default=base)
    results = []
    for name in facts:
        epoch = timings[name]
        ratio = timing.speedup(timings[base], epoch)
        row = {"kernels": name, "network": network, "n_ranks": 1, "data": data.name, "epochs": 1}
        row |= {"n_images": EPOCH, "batch": batch, "seconds_per_epoch": epoch.median}
        row |= {"seconds_interval": [epoch.low, epoch.high], "samples": list(epoch.samples)}
        row |= {"processes": epoch.processes, "images_per_second": EPOCH / epoch.median}
        row |= {"train_loss": None, "test_accuracy": None, "gflops": flops / epoch.median / 1e9}
        row |= {"peak_fraction": timing.ratio(peak, epoch).value, "ratio_to": base}
        row |= {"ratio": ratio.value, "ratio_interval": [ratio.low, ratio.high]}
        row["layers"] = {
            operation: group[name].median * EPOCH / batch
            for operation, group in by_layer.items()
            if name in group
        }
        results.append(row | {"of_peak": of_peak(name, by_layer, batch, net), **facts[name]})
    report = {"results": results, "ratio_to": base, "peak_gflops": flops / peak.median / 1e9}
    return report | {"bound": bound, "machine": here}


def of_peak(name: str, by_layer: dict[str, dict], batch: int, network: Network) -> dict[str, float]:
    """The fraction of one core's peak that a strategy reaches, by layer and by operation.

    Only where there are multiply-adds, and `layers` has timed them.
    """
    result, work = {}, network.multiply_adds
    for place in network.places:
        fractions = {
            part: batch * work[part] * timing.ratio(group[PEAK], group[name]).value
            for part, group in by_layer.items()
            if re.fullmatch(f"{place.name}_(forward|backward_(weights|input))", part)
            if part in work and name in group
        }
        if fractions:
            least = sum(work[part] for part in fractions)
            result[place.name] = least / sum(work[part] / fractions[part] for part in fractions)
        result |= fractions
    return result


def of_cores(timings: dict[str, Timing]) -> float | None:
    """How fast networks on their own are on all cores at once, beside one alone."""
    return timing.ratio(timings[ALONE], timings[TOGETHER]).value if TOGETHER in timings else None


def said(bound: float) -> str:
    """The bound of a machine with several cores in words."""
    return f"networks on their own, one a core, have {bound:.2f} of the speed of one alone"


def efficiencies(report: dict) -> list[str]:
    """A line on the cores, and one for each contestant on several threads."""
    if report["bound"] is None:
        return []
    quiet = "" if report["bound"] >= QUIET else ": this machine was not quiet, or its cores share"
    lines = [f"{said(report['bound'])}{quiet}."]
    here = [row for row in report["results"] if row["machine"] == report["machine"]["cpu"]]
    alone = [row for row in here if row["n_threads"] == 1]
    for row in here if alone else []:
        if row["n_threads"] > 1:
            one = min(alone, key=lambda other: other["seconds_per_epoch"])
            speedup = one["seconds_per_epoch"] / row["seconds_per_epoch"]
            efficiency = speedup / row["n_threads"]
            lines.append(
                f"{row['kernels']} on {row['n_threads']} threads: efficiency {efficiency:.2f} "
                f"against {one['kernels']}, {efficiency / report['bound']:.2f} of that bound."
            )
    return lines


def table(report: dict) -> str:
    """A report of `run` as text."""
    results = report["results"]
    network, batch = results[0].get("network", REPORT), results[0]["batch"]
    start = "An" if network == REPORT else f"{network}: an"
    head = "", "seconds", "GFLOP/s", "of peak", f"times faster than {report['ratio_to']}"
    steps = [
        (
            row["kernels"],
            "{:.3g} ({:.3g} to {:.3g})".format(row["seconds_per_epoch"], *row["seconds_interval"]),
            f"{row['gflops']:.1f}",
            f"{row['peak_fraction']:.0%}",
            "{:.3g} ({:.3g} to {:.3g})".format(row["ratio"], *row["ratio_interval"]),
        )
        for row in results
    ]
    by_layer = [row for row in results if row["layers"]]
    operations = [
        (operation, *(f"{row['layers'][operation]:.3g}" for row in by_layer))
        for operation in by_layer[0]["layers"]
    ]
    names = "seconds by operation", *(row["kernels"] for row in by_layer)
    return "\n".join(
        [
            f"{start} epoch of {EPOCH:,} images at batch {batch}, median and 95 % interval; "
            f"one core's measured peak: {report['peak_gflops']:.0f} GFLOP/s",
            arguments.table([head, *steps], "<>>><"),
            *efficiencies(report),
            "",
            arguments.table([names, *operations], "<" + ">" * len(by_layer)),
        ]
    )


def page(report: dict) -> str:
    """A report of `run` as a page: the machine, the tables, and fractions of the peak by layer."""
    results = report["results"]
    shares = [{"whole step": row["peak_fraction"]} | row["of_peak"] for row in results]
    rows = [
        (part, *(f"{one[part]:.0%}" if part in one else "" for one in shares))
        for part in dict.fromkeys(part for one in shares for part in one)
    ]
    head = "of one core's measured peak", *(row["kernels"] for row in results)
    fractions = arguments.table([head, *rows], "<" + ">" * len(results))
    start = f"Network {results[0]['network']}, batches of {results[0]['batch']}"
    return "\n\n".join([start, machine.summary(), table(report), fractions]) + "\n"
