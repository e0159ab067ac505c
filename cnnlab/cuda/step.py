"""A training step in two launches: a block for each image, then the sum of what they found."""

import functools
from math import prod

import numpy as np

from cnnlab import cuda
from cnnlab.cuda.launcher import MOST_SHARED, MOST_THREADS
from cnnlab.cuda.layerwise import Layerwise
from cnnlab.cuda.resident import Call, OnDevice
from cnnlab.network import REPORT_FORM, Network, Parameters

# At most, whatever the GPU, so that sums have one order everywhere. Larger batches give each block
# several images: 256 images are two for each of an H100's 132 multiprocessors.
BLOCKS = 128
WARP, REGISTERS, OF_A_BLOCK = 32, 255, 65536  # of a thread at most, and of all threads of a block
COLUMNS, ROWS = 32, 8  # of a block of add_and_update
MANY = 64  # steps in a graph, where an epoch is trained in parts


class Step(OnDevice):
    """Two launches for a step, whatever the batch; see step.cu. The arguments are `OnDevice`'s, and

    kernels : those of a changed step.cu, compiled for the sizes of the network; None: its own

    Raises ValueError for a network that a block cannot take, see `misfit`.
    """

    def __init__(self, params, images, labels, *, batch=256, rate=0.4, kernels=None):
        self._kernels = kernels
        super().__init__(params, images, labels, batch=batch, rate=rate)

    def _stages(self) -> list[list[Call]]:
        if reason := misfit(self._params.network):
            raise ValueError(f"network: {reason}")
        xp, size = self._xp, self._flat.size
        row = -(-(size + 1) // COLUMNS) * COLUMNS  # the loss stands behind the gradients
        self._partials = xp.empty((min(self.batch, BLOCKS), row), np.float32)
        self._sums, self._total = xp.zeros(size + 1, np.float32), xp.zeros(1, np.float64)
        self._grads, self._rate = self._sums[:size], xp.asarray([self.rate], np.float32)
        return self._launches(self.batch)

    def _launches(self, batch: int) -> list[list[Call]]:
        """The launches for a batch that may be smaller than the others, such as an epoch's last."""
        net, blocks = self._params.network, min(batch, BLOCKS)
        kernels = self._kernels or cuda.load("step", SIZES=sizes(net))
        threads = prod(net["pool"].shape)
        given = self._images, self._labels, self._order, self._position, self._flat, self._partials
        first = kernels.prepare("image_gradients", (blocks,), (threads,), *given, batch)
        grid, block = (self._partials.shape[1] // COLUMNS,), (COLUMNS, ROWS)
        given = self._partials, self._flat, self._sums, self._rate, self._position, self._total
        return [[first], [kernels.prepare("add_and_update", grid, block, *given, blocks, batch)]]

    def _state(self) -> list:
        return [*super()._state(), self._total]

    def loss(self) -> float:
        """The mean loss of the last batch."""
        return float(self._sums[-1]) / self.batch

    def train(self, params: Parameters, order, rate: float) -> float:
        """Train `params` on the images number `order`, a batch at a time; the loss, summed.

        The last batch may be smaller. Only parameters, order and loss travel.
        """
        n_steps, rest = divmod(len(order), self.batch)
        calls = [self._many] * (n_steps // MANY) + [self] * (n_steps % MANY)
        calls += [stage[0] for stage in self._launches(rest)] if rest else []
        self.start(order)
        self._flat[...] = self._xp.asarray(params.flat)
        self._rate[...], self._total[...] = rate, 0
        for call in calls:
            call()
        params.flat[:] = self.parameters().flat
        return float(self._total[0])

    @functools.cached_property
    def _many(self) -> Call:
        return self.graph(MANY)


def sizes(network: Network) -> str:
    """The sizes of a network of the report's form, as step.cu takes them."""
    conv, pool = network["conv"].layer, network["pool"].layer
    given = *network.image_shape, conv.filters, conv.kernel, pool.size, network.classes
    return ", ".join(f"{name} = {size}" for name, size in zip("CHWFKSO", given, strict=True))


def misfit(network: Network) -> str | None:
    """Why a block of `Step` cannot take an image of a network, in words; None if it can.

    A block has a thread for each pooling window of each map, which holds its pixels, outputs and
    sums in registers, and as much shared memory as every GPU grants.
    """
    if network.form != REPORT_FORM:
        return f"expected {', '.join(REPORT_FORM)}, got {', '.join(network.form)}"
    maps, *windows = network["pool"].shape
    threads = maps * prod(windows)
    if not WARP <= threads <= MOST_THREADS:
        return f"expected {WARP} to {MOST_THREADS} windows of all maps, got {threads}"
    if (n_bytes := shared_bytes(network)) > MOST_SHARED:
        return f"expected at most {MOST_SHARED} bytes of shared memory, got {n_bytes}"
    channels, kernel = network.image_shape[0], network["conv"].layer.kernel
    side = network["pool"].layer.size
    held = channels * ((side + kernel - 1) ** 2 + kernel**2) + 2 * side**2 + network.classes
    most = min(REGISTERS, OF_A_BLOCK // (-(-threads // 256) * 256))
    if held + 32 > most:  # 32: addresses, counters, and values on their way
        return f"expected at most {most} registers for each of {threads} threads, got {held + 32}"
    return None


def shared_bytes(network: Network) -> int:
    """The shared memory of a block of image_gradients."""
    (channels, height, width), (maps, *windows) = network.image_shape, network["pool"].shape
    side, taps = network["pool"].layer.size, network["conv"].layer.kernel ** 2
    image = channels * (height * width + height // side + 1)
    room = maps * max(taps, side**2) * (prod(windows) | 1)
    parameters = sum(map(prod, network.parameter_shapes.values()))
    return 4 * (image + parameters + maps * prod(windows) + 2 * network.classes + room)


def rungs(params: Parameters, images, labels, *, batch: int, rate: float) -> dict:
    """The ladder: name → an `OnDevice`, a call, and how many steps the call makes.

    A launch for each operation, fused launches, a block for each image, an epoch as one graph; on
    the emulator, which has no launches to save, a graph is one step.
    """
    data, how = (images, labels), {"batch": batch, "rate": rate}
    naive, fused = Layerwise(params, *data, **how), Layerwise(params, *data, **how, fused=True)
    blocks, whole = Step(params, *data, **how), Step(params, *data, **how)
    n_steps = whole.steps_an_epoch if cuda.gpu()[0] else 1
    return {
        "device": (naive, naive, 1),
        "device, fused": (fused, fused, 1),
        "device, block": (blocks, blocks, 1),
        "device, graph": (whole, whole.graph(n_steps), n_steps),
    }
