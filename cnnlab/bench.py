"""Benchmarks: whole training steps and single layers of every strategy, alternated in one run."""

import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from cnnlab import cuda, machine, measure, pool
from cnnlab.kernels import CONTRACT, KERNELS, Strategy
from cnnlab.kernels.contract import STRIDES
from cnnlab.network import Network, Parameters, loss_and_gradients
from cnnlab.training import RATE, sgd_steps, steps_in_a_row

EPOCH = 60_000  # images
FLOPS = 2 * sum(Network().multiply_adds.values()) * EPOCH  # of multiply-adds alone
MEASUREMENTS = Path(__file__).resolve().parents[1] / "data" / "measurements"
LAYERS = {"conv": "convolution", "pool": "pooling", "dense": "fully connected"}


class Contestant:
    """One way to train: `steps()` takes `n_steps` batches through forward, backward and update.

    For the time of one, see `step_times`. A strategy that is not parallel runs on one thread,
    whatever `n_threads` says.
    """

    def __init__(self, strategy: Strategy, data, batch: int, n_threads: int = 1):
        self.strategy, self.batch = strategy, batch
        self.n_threads = n_threads if strategy.parallel else 1
        self.params = Network().parameters(0, strategy.dtype)
        self.grads = Network().zeros(strategy.dtype)
        self.images = data.train_images.astype(strategy.dtype, copy=False)
        self.labels = data.train_labels
        self.n_steps = steps_in_a_row(strategy, batch)
        shuffled, self.position = np.random.default_rng(0).permutation(len(self.labels)), 0
        self.order = np.resize(shuffled, max(len(shuffled), self.n_steps * batch))

    def next_batches(self) -> np.ndarray:
        """Indices of the next `n_steps` batches, round and round through the shuffled images."""
        several = self.n_steps * self.batch
        if self.position + several > len(self.order):
            self.position = 0
        self.position += several
        return self.order[self.position - several : self.position]

    def steps(self) -> None:
        """Train on the next batches."""
        self.train(self.next_batches())

    def train(self, order: np.ndarray) -> None:
        """Train on the images number `order`."""
        with pool.threads(self.n_threads):
            sgd_steps(
                self.strategy, self.params, self.grads,
                self.images, self.labels, order, self.batch, RATE,
            )  # fmt: skip

    def gradients(self, x: np.ndarray, labels: np.ndarray) -> Parameters:
        """Gradients of a batch, summed, at the parameters as they are now."""
        x = x.astype(self.strategy.dtype)
        with pool.threads(self.n_threads):
            loss_and_gradients(self.strategy, self.params, x, labels, self.grads)
        return self.grads

    def check(self) -> None:
        """Raise AssertionError unless the gradients and a step are those of the reference."""
        x, labels, name = self.images[: self.batch], self.labels[: self.batch], self.strategy.name
        exact = exact_gradients(self.params, x, labels)
        measure.same(self.gradients(x, labels).flat, exact.flat, name=f"gradients of {name}")
        expected = self.params.flat - RATE / len(x) * exact.flat
        self.train(np.arange(len(x)))
        measure.same(self.params.flat, expected, name=f"parameters after a step of {name}")


def exact_gradients(params: Parameters, x: np.ndarray, labels: np.ndarray) -> Parameters:
    """Gradients of a batch, summed, by the reference in float64."""
    wide, grads = params.network.zeros(np.float64), params.network.zeros(np.float64)
    wide.flat[:] = params.flat
    loss_and_gradients(KERNELS["reference"], wide, x.astype(np.float64), labels, grads)
    return grads


def contestants(names: Sequence[str], data, batch: int, n_threads: int, against: str | None):
    """The strategies of these names, and PyTorch if asked for, as one dictionary."""
    others = [name for name in names if name != "device"]
    found = {name: Contestant(KERNELS[name], data, batch, n_threads) for name in others}
    if "device" in names:
        from cnnlab.cuda import contestant

        found |= contestant.contestants(data, batch)
    if against == "torch":
        from cnnlab.torch_peer import TorchContestant

        found["torch"] = TorchContestant(data, batch, n_threads)
    return found


def step_times(
    found: dict[str, Contestant],
    *,
    others: dict[str, Callable[[], object]] | None = None,
    repeats: int = 11,
    min_time: float = 0.1,
) -> dict[str, measure.Timing]:
    """Seconds of one training step by each contestant; every one is checked first.

    `others` are calls that take turns with them: a processor does not keep its clock.
    """
    timings = measure.compare(
        {name: one.steps for name, one in found.items()} | (others or {}),
        checks={name: one.check for name, one in found.items()},
        repeats=repeats,
        min_time=min_time,
    )
    n_steps = {name: one.n_steps for name, one in found.items()}
    return {name: scaled(timing, 1 / n_steps.get(name, 1)) for name, timing in timings.items()}


def scaled(timing: measure.Timing, factor: float) -> measure.Timing:
    """A timing with all samples times the factor."""
    return measure.Timing(timing.name, tuple(factor * s for s in timing.samples))


def epochs(
    found: dict[str, Contestant], batch: int, repeats: int, *, peak: bool = False
) -> dict[str, measure.Timing]:
    """Seconds for an epoch of 60,000 images by each contestant; every one is checked first.

    With `peak` also, under that name, what the multiply-adds of an epoch take at the peak of one
    core, alternately with the others.
    """
    others, factors = {}, {}
    if peak:
        others["peak"], flops = machine.peak_sweep()
        factors["peak"] = FLOPS / flops
    timings = step_times(found, others=others, repeats=repeats)
    return {
        name: scaled(timing, factors.get(name, EPOCH / batch)) for name, timing in timings.items()
    }


def layers(names: Sequence[str], batch: int, repeats: int) -> dict[str, dict[str, measure.Timing]]:
    """Seconds of each operation, checked and alternated: operation → strategy → Timing."""
    return {
        operation: measure.compare(
            {name: layer_call(name, operation, batch) for name in names}, repeats=repeats
        )
        for operation in layer_shapes(batch)
    }


def layer_shapes(batch: int) -> dict[str, dict[str, tuple[int, ...]]]:
    """Shapes of the arguments of every operation that a training step of the network performs."""
    net = Network()
    sizes = {"N": batch, "D": net.features, "O": net.classes}
    conv = sizes | dict(zip("CHW", net.image_shape, strict=True)) | {"K": net.kernel}
    conv |= dict(zip("FPQ", net.conv_shape, strict=True))
    pool = sizes | dict(zip("CHW", net.conv_shape, strict=True)) | {"K": net.pool}
    pool |= dict(zip("CPQ", net.pool_shape, strict=True))
    shapes = {}
    for operation, arguments in CONTRACT.items():
        letters = pool if operation.startswith("pool") else conv
        shapes[operation] = {
            name: (batch, *net.conv_shape) if text == "..." else tuple(letters[i] for i in text)
            for name, text in arguments.items()
        }
    del shapes["conv_backward_input"]  # the first layer: nobody needs it
    return shapes


def layer_call(name: str, operation: str, batch: int) -> Callable[[], object]:
    """A call of one operation on the network's shapes, proved against the reference."""
    strategy, rng = KERNELS[name], np.random.default_rng(0)
    arrays = [
        rng.integers(0, Network().classes, shape)
        if argument == "labels"
        else rng.uniform(0.02, 0.98, shape).astype(strategy.dtype)
        for argument, shape in layer_shapes(batch)[operation].items()
    ]
    options = {}
    if operation in STRIDES:
        options["stride"] = Network().pool if operation.startswith("pool") else 1
    exact = [a if a.dtype.kind == "i" else a.astype(np.float64) for a in arrays]
    getattr(KERNELS["reference"], operation)(*exact, **options)
    getattr(strategy, operation)(*arrays, **options)
    measure.same(arrays[-1], exact[-1], name=f"{operation} of {name}")
    kernel = strategy.kernel(operation)
    if name == "device":  # on a GPU, without the way there and back
        arrays = [cuda.array_module().asarray(a) for a in arrays]
    return lambda: kernel(*arrays, *options.values())


def run(
    names: Sequence[str],
    data,
    *,
    batch: int = 64,
    n_threads: int = 1,
    against: str | None = None,
    repeats: int = 11,
    progress=sys.stderr,
) -> dict:
    """Measure strategies on this machine; return what `python -m cnnlab bench --json` prints.

    `results` has a row for each contestant: seconds per epoch with their 95 % interval, GFLOP/s
    and their share of one core's measured peak, seconds per epoch of each operation, and how many
    times faster it is than `ratio_to`, with its interval.
    """
    print("measuring whole steps beside the peak of one core, then layers", file=progress)
    found = contestants(names, data, batch, n_threads, against)
    timings = epochs(found, batch, repeats, peak=True)
    peak = timings.pop("peak")
    with pool.threads(n_threads):
        by_layer = layers(names, batch, max(3, repeats // 2))
    base = against or ("loops" if "loops" in names else names[0])
    results = []
    for name, timing in timings.items():
        ratio = measure.speedup(timings[base], timing)
        results.append(
            {
                "kernels": name,
                "n_threads": found[name].n_threads,
                "n_ranks": 1,
                "data": data.name,
                "n_images": EPOCH,
                "batch": batch,
                "epochs": 1,
                "seconds_per_epoch": timing.median,
                "seconds_interval": [timing.low, timing.high],
                "samples": list(timing.samples),
                "images_per_second": EPOCH / timing.median,
                "train_loss": None,
                "test_accuracy": None,
                "gflops": FLOPS / timing.median / 1e9,
                "peak_fraction": measure.ratio(peak, timing).value,
                "ratio_to": base,
                "ratio": ratio.value,
                "ratio_interval": [ratio.low, ratio.high],
                "layers": {
                    operation: of[name].median * EPOCH / batch
                    for operation, of in by_layer.items()
                    if name in of
                },
                "machine": cuda.where() if name.startswith("device") else machine.describe()["cpu"],
            }
        )
    return {
        "results": results,
        "ratio_to": base,
        "peak_gflops": FLOPS / peak.median / 1e9,
        "machine": machine.describe(),
    }


def record(report: dict, folder: Path) -> Path:
    """Keep a report of `run` as bench-<processor>.json and as speedup.png; return the first.

    The folder is made where it is missing. The picture shows times of whole training steps.
    """
    import matplotlib.pyplot as plt

    from cnnlab import plots

    folder.mkdir(parents=True, exist_ok=True)
    hardware = str(report["machine"]["cpu"])
    if cuda.gpu()[0]:
        hardware += f" {cuda.where()}"
    hardware = re.sub(r"\W+", "-", hardware.lower()).strip("-")
    file = folder / f"bench-{hardware}.json"
    file.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    rows = report["results"]
    timings = {r["kernels"]: measure.Timing(r["kernels"], tuple(r["samples"])) for r in rows}
    base = "loops" if "loops" in timings else report["ratio_to"]
    title = f"An epoch of {EPOCH:,} images, batches of {rows[0]['batch']}"
    axes = plots.speedups(timings, base=base, per="epoch", title=title)
    axes.figure.savefig(folder / "speedup.png", dpi=150)
    plt.close(axes.figure)
    return file


def recorded(folder: Path = MEASUREMENTS) -> list[dict]:
    """All rows of `results` that `record` has kept in a folder; none where there is no folder."""
    files = sorted(folder.glob("bench-*.json"))
    return [row for file in files for row in json.loads(file.read_text("utf-8"))["results"]]


def table(report: dict) -> str:
    """The report of `run` as text for people."""
    batch, base = report["results"][0]["batch"], report["ratio_to"]
    lines = [
        f"An epoch of {EPOCH:,} images at batch {batch}, median and 95 % interval; one core's "
        f"measured peak: {report['peak_gflops']:.0f} GFLOP/s",
        f"{'':10} {'seconds':>24} {'GFLOP/s':>8} {'of peak':>8}  times faster than {base}",
    ]
    for row in report["results"]:
        low, high = row["seconds_interval"]
        seconds = f"{row['seconds_per_epoch']:.3g} ({low:.3g} to {high:.3g})"
        faster = "{:.3g} ({:.3g} to {:.3g})".format(row["ratio"], *row["ratio_interval"])
        lines.append(
            f"{row['kernels']:10} {seconds:>24} {row['gflops']:8.1f} "
            f"{row['peak_fraction']:8.0%}  {faster}"
        )
    named = [row for row in report["results"] if row["layers"]]
    lines += ["", "Seconds per epoch by operation" + "".join(f"{r['kernels']:>12}" for r in named)]
    for operation in named[0]["layers"]:
        figures = "".join(f"{row['layers'][operation]:12.3g}" for row in named)
        lines.append(f"  {operation:28}{figures}")
    return "\n".join(lines)
