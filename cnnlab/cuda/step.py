"""Training on the device: images, labels, parameters and gradients stay there."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from math import prod

import numpy as np

from cnnlab import cuda
from cnnlab.cuda.launcher import MOST_SHARED, MOST_THREADS
from cnnlab.network import REPORT_FORM, Network, Parameters

Call = Callable[[], None]


class OnDevice:
    """Forward, backward and update for one batch after another, as prepared launches.

    Copies of `params`, float32, and of the training set, images float32 (n,C,H,W) and labels (n),
    go to the device. After a batch's last image comes the next batch's first, see `start`; `rate`
    is for the mean gradient. A subclass makes `stages`: the launches of a step in order; those of
    one stage are independent. Raises ValueError if the set is smaller than a batch.
    """

    def __init__(self, params: Parameters, images, labels, *, batch=256, rate=0.4):
        if not 1 <= batch <= len(images):
            raise ValueError(f"batch: expected 1 to {len(images)} images, got {batch}")
        self._xp = xp = cuda.array_module()
        self._params, self.network = params, params.network
        self.batch, self.rate, self.steps_an_epoch = batch, rate, len(images) // batch
        self._flat, self._grads = xp.asarray(params.flat.copy()), xp.zeros_like(params.flat)
        self._images = xp.ascontiguousarray(xp.asarray(images))
        self._labels = xp.asarray(labels).astype(np.int32)
        self._order = xp.arange(len(images), dtype=np.int32)
        self._position = xp.asarray([0, len(images)], np.int32)  # in the order, and its length
        self.stages = self._stages()

    def _stages(self) -> list[list[Call]]:
        raise NotImplementedError

    def __call__(self) -> None:
        """Make all launches of a step in order; on a GPU, without waiting for them."""
        for stage in self.stages:
            for call in stage:
                call()

    def start(self, order) -> None:
        """Begin with the first batch of the images numbered in `order`, which wraps around.

        Raises ValueError for anything but up to n numbers of images.
        """
        order, n = np.asarray(order), len(self._order)
        whole = order.dtype.kind in "iu" and order.ndim == 1 and 1 <= len(order) <= n
        if not whole or order.min() < 0 or order.max() >= n:
            got = np.array2string(order, threshold=8)  # a long order in a few numbers
            raise ValueError(f"order: expected 1 to {n} numbers of images 0..{n - 1}, got {got}")
        self._order[: len(order)] = self._xp.asarray(order.astype(np.int32))
        self._position[...] = self._xp.asarray([0, len(order)], np.int32)

    def graph(self, n_steps: int = 1) -> Call:
        """One call that makes all launches of the next `n_steps` steps: on a GPU, a CUDA graph."""
        with self.undone():  # capturing may make the steps
            return cuda.graph(self.stages * n_steps)

    @contextlib.contextmanager
    def undone(self) -> Iterator[None]:
        """Go back to where training was before the `with` block."""
        kept = [array.copy() for array in self._state()]
        yield
        for array, value in zip(self._state(), kept, strict=True):
            array[...] = value

    def _state(self) -> list:
        """The arrays that steps change and build on."""
        return [self._flat, self._position]

    def parameters(self) -> Parameters:
        """The current parameters, copied from the device."""
        return self._from_device(self._flat)

    def gradients(self) -> Parameters:
        """The gradients of the last batch, summed over its images."""
        return self._from_device(self._grads)

    def _from_device(self, flat) -> Parameters:
        params = self._params.copy()
        params.flat[:] = flat if isinstance(flat, np.ndarray) else flat.get()
        return params


# --- a training step layer by layer: a launch for each operation, or for a few that are fused -----


class Layerwise(OnDevice):
    """Launches of the strategy's kernels, one after the other; the arguments are `OnDevice`'s.

    If `fused`, sigmoids and the loss are part of the kernels before and after them.
    """

    def __init__(self, params, images, labels, *, batch=256, rate=0.4, fused=False):
        self._fuses = fused
        super().__init__(params, images, labels, batch=batch, rate=rate)

    def _stages(self) -> list[list[Call]]:
        self._losses = self._xp.zeros(self.batch, np.float32)
        return self._fused() if self._fuses else self._plain()

    def loss(self) -> float:
        """The mean loss of the last batch."""
        return float(self._losses.sum()) / self.batch

    def _arrays(self):
        """Memory for a batch by name, made once: a graph keeps the addresses."""
        net, empty = self.network, self._xp.empty
        batches = {name: net[name].shape for name in ("conv", "pool", "dense")}
        batches["x"] = net.image_shape
        made = {name: empty((self.batch, *shape), np.float32) for name, shape in batches.items()}
        made |= {f"d{name}": empty(made[name].shape, np.float32) for name in batches if name != "x"}
        return made | {"y": empty(self.batch, np.int32)}

    def _sizes(self):
        """The sizes that the kernels of each layer take after their arrays."""
        n, net = self.batch, self.network
        conv, pool, dense = (net[name] for name in ("conv", "pool", "dense"))
        return {
            "conv": (n, *conv.input_shape, conv.layer.filters, conv.layer.kernel, 1),
            "pool": (n, *pool.input_shape, pool.layer.size, pool.layer.size),
            "dense": (n, prod(dense.input_shape), *dense.shape),
        }

    def _plain(self) -> list[list[Call]]:
        """One launch per operation of the contract."""
        n, a, over, per = self.batch, self._arrays(), self._over, self._per
        conv_w, conv_b, pool_w, pool_b, dense_w, dense_b = Parameters(self.network, flat=self._flat)
        conv_z, pool_z, dense_z = (self._xp.empty_like(a[k]) for k in ("conv", "pool", "dense"))
        conv_dz, pool_dz = self._xp.empty_like(conv_z), self._xp.empty_like(pool_z)
        conv, pool, dense = self._sizes().values()
        calls = [
            self._take(a["x"], a["y"]),
            over("conv", "conv_forward", conv_z.size, a["x"], conv_w, conv_b, conv_z, *conv),
            over("elementwise", "sigmoid", conv_z.size, conv_z, a["conv"], conv_z.size),
            over("pool", "pool_forward", pool_z.size, a["conv"], pool_w, pool_b, pool_z, *pool),
            over("elementwise", "sigmoid", pool_z.size, pool_z, a["pool"], pool_z.size),
            per("dense", "dense_forward", dense_z.size, 64, a["pool"], dense_w, dense_b, dense_z,
                *dense),
            over("elementwise", "sigmoid", dense_z.size, dense_z, a["dense"], dense_z.size),
            over("elementwise", "cross_entropy", n, a["dense"], a["y"], a["ddense"],
                 self._losses, n, self.network.classes),
            *self._learn("dense", a["pool"], a["ddense"]),
            over("dense", "dense_backward_input", a["pool"].size, a["ddense"], dense_w,
                 a["dpool"], *dense),
            over("elementwise", "sigmoid_backward", pool_z.size, a["pool"], a["dpool"], pool_dz,
                 pool_z.size),
            *self._learn("pool", a["conv"], pool_dz),
            over("pool", "pool_backward_input", conv_z.size, pool_dz, pool_w, a["dconv"], *pool),
            over("elementwise", "sigmoid_backward", conv_z.size, a["conv"], a["dconv"], conv_dz,
                 conv_z.size),
            *self._learn("conv", a["x"], conv_dz),
            self._update(),
        ]  # fmt: skip
        return [[call] for call in calls]

    def _fused(self) -> list[list[Call]]:
        """Fused launches, which never write a preactivation; a layer's gradients share a stage."""
        a, over, per = self._arrays(), self._over, self._per
        conv_w, conv_b, pool_w, pool_b, dense_w, dense_b = Parameters(self.network, flat=self._flat)
        conv, pool, dense = self._sizes().values()
        return [
            [self._take(a["x"], a["y"])],
            [over("fused", "conv_sigmoid", a["conv"].size, a["x"], conv_w, conv_b, a["conv"],
                  *conv)],
            [over("fused", "pool_sigmoid", a["pool"].size, a["conv"], pool_w, pool_b, a["pool"],
                  *pool)],
            [per("fused", "dense_loss", self.batch, 320, a["pool"], dense_w, dense_b, a["y"],
                 a["ddense"], self._losses, *dense[1:])],
            [over("fused", "dense_backward_sigmoid", a["pool"].size, a["ddense"], dense_w,
                  a["pool"], a["dpool"], *dense),
             *self._learn("dense", a["pool"], a["ddense"])],
            [over("fused", "pool_backward_sigmoid", a["conv"].size, a["dpool"], pool_w, a["conv"],
                  a["dconv"], *pool),
             *self._learn("pool", a["conv"], a["dpool"])],
            self._learn("conv", a["x"], a["dconv"]),
            [self._update()],
        ]  # fmt: skip

    def _learn(self, layer: str, x, dz) -> list[Call]:
        """The gradients of a layer's weights and bias, from its input and that of its result."""
        grads, n = Parameters(self.network, flat=self._grads), self.batch
        dw, db = grads.at(self.network[layer])
        kernel, given = f"{layer}_backward_weights", (x, dz, dw, *self._sizes()[layer])
        weights = (
            self._over(layer, kernel, dw.size, *given)
            if layer == "dense"
            else self._per(layer, kernel, dw.size, 256, *given)
        )
        sizes = n, len(db), dz.size // (n * len(db))
        return [weights, self._per("conv", "conv_backward_bias", len(db), 256, dz, db, *sizes)]

    def _take(self, x, y) -> Call:
        """Copy the next batch to x and y."""
        given = self._images, self._labels, self._order, self._position, x, y
        return self._over("fused", "take_batch", x.size, *given, self.batch, x.size // self.batch)

    def _update(self) -> Call:
        """Subtract rate × mean gradient from the parameters, and go on to the next batch."""
        size, scale = self._flat.size, self.rate / self.batch
        given = self._flat, self._grads, scale, size, self._position, self.batch
        return self._over("fused", "update", size, *given)

    @staticmethod
    def _per(source: str, kernel: str, blocks: int, threads: int, *arguments) -> Call:
        """A launch with one block per result."""
        return cuda.load(source).prepare(kernel, (blocks,), (threads,), *arguments)

    def _over(self, source: str, kernel: str, size: int, *arguments) -> Call:
        """A launch with one thread per element of `size`."""
        return self._per(source, kernel, -(-size // 256), 256, *arguments)


# --- a training step in two launches: a block for each image, then the sum of what they found -----

# At most, whatever the GPU, so that sums have one order everywhere. Larger batches give each block
# several images: 256 images are two for each of an H100's 132 multiprocessors.
# A multiprocessor holds one block at a time: a second would need 128 registers a thread, and 272
# bytes of each would be spilled, see `make gpu-report`. So less shared memory would gain nothing.
BLOCKS = 128
WARP, REGISTERS, OF_A_BLOCK = 32, 255, 65536  # of a thread at most, and of all threads of a block
COLUMNS, ROWS = 32, 8  # of a block of add_and_update
MANY = 64  # steps in a graph, where an epoch is trained in parts


class FusedStep(OnDevice):
    """Two launches for a step, whatever the batch; see step.cu. The arguments are `OnDevice`'s.

    Raises ValueError for a network that a block cannot take, see `misfit`.
    """

    def _stages(self) -> list[list[Call]]:
        if reason := misfit(self.network):
            raise ValueError(f"network: {reason}")
        xp, size = self._xp, self._flat.size
        row = -(-(size + 1) // COLUMNS) * COLUMNS  # the loss stands behind the gradients
        self._partials = xp.empty((min(self.batch, BLOCKS), row), np.float32)
        self._sums, self._total = xp.zeros(size + 1, np.float32), xp.zeros(1, np.float64)
        self._grads, self._rate = self._sums[:size], xp.asarray([self.rate], np.float32)
        return self._launches(self.batch)

    def _launches(self, batch: int) -> list[list[Call]]:
        """The launches for a batch that may be smaller than the others, such as an epoch's last."""
        kernels, blocks = cuda.load("step", SIZES=sizes(self.network)), min(batch, BLOCKS)
        threads = prod(self.network["pool"].shape)
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
    """Why a block of `FusedStep` cannot take an image of a network, in words; None if it can.

    A block's threads, one for each window of each map, hold pixels, outputs and sums in registers.
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

    By operation, fused, by image, and an epoch as a graph (of one step on the emulator).
    """
    data, how = (images, labels), {"batch": batch, "rate": rate}
    naive, fused = Layerwise(params, *data, **how), Layerwise(params, *data, **how, fused=True)
    blocks, whole = FusedStep(params, *data, **how), FusedStep(params, *data, **how)
    n_steps = whole.steps_an_epoch if cuda.gpu()[0] else 1
    return {
        "device": (naive, naive, 1),
        "device, fused": (fused, fused, 1),
        "device, block": (blocks, blocks, 1),
        "device, graph": (whole, whole.graph(n_steps), n_steps),
    }
