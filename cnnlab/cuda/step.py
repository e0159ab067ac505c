"""A training step on the device, where data, parameters and gradients stay."""

import math
from collections.abc import Callable

import numpy as np

from cnnlab import cuda
from cnnlab.network import Parameters

Call = Callable[[], None]


class Step:
    """Forward, backward and update for one batch after another, as prepared launches.

    Parameters
    ----------
    params : Parameters, float32; a copy goes to the device, see `parameters`
    images, labels : the training set, float32 (n,C,H,W) and integers (n), copied to the device
    batch : images per step; the first image follows the last, see `start`
    rate : the learning rate, for the mean gradient of a batch
    fused : whether sigmoids and the loss are part of the kernels before and after them

    `stages` has the launches in order; those of one stage are independent. Raises ValueError if the
    set is smaller than a batch.
    """

    def __init__(self, params: Parameters, images, labels, *, batch=256, rate=0.4, fused=False):
        if not 1 <= batch <= len(images):
            raise ValueError(f"batch: expected 1 to {len(images)} images, got {batch}")
        self._xp = xp = cuda.array_module()
        self._params = params
        self.steps_an_epoch = len(images) // batch
        self._flat, self._grads = xp.asarray(params.flat.copy()), xp.zeros_like(params.flat)
        self._images = xp.ascontiguousarray(xp.asarray(images))
        self._labels = xp.asarray(labels).astype(np.int32)
        self._order = xp.arange(len(images), dtype=np.int32)
        self._position = xp.zeros(1, np.int32)
        self._losses = xp.zeros(batch, np.float32)
        self.batch, self.rate = batch, rate
        self.stages = self._fused() if fused else self._plain()

    def __call__(self) -> None:
        """Make all launches in order; on a GPU, without waiting for them."""
        for stage in self.stages:
            for call in stage:
                call()

    @property
    def n_launches(self) -> int:
        """The number of launches of a step."""
        return sum(map(len, self.stages))

    def start(self, order) -> None:
        """Begin an epoch with the images in this order, a permutation of their numbers.

        Raises ValueError for anything else.
        """
        order = np.asarray(order)
        if sorted(order.tolist()) != list(range(len(self._order))):
            got = np.array2string(order, threshold=8)  # a long order in a few numbers
            raise ValueError(
                f"order: expected a permutation of {len(self._order)} numbers, got {got}"
            )
        self._order[...] = self._xp.asarray(order.astype(np.int32))
        self._position[...] = 0

    def loss(self) -> float:
        """The mean loss of the last batch."""
        return float(self._losses.sum()) / self.batch

    def graph(self) -> Call:
        """One call that makes all launches of a step: on a GPU, a CUDA graph."""
        kept = self._flat.copy(), self._position.copy()
        replay = cuda.graph(self.stages)
        self._flat[...], self._position[...] = kept  # capturing may have made a step
        return replay

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

    # --- the launches ---------------------------------------------------------------------------

    def _arrays(self):
        """Memory for a batch by name, made once: a graph keeps the addresses."""
        net, empty = self._params.network, self._xp.empty
        batches = {name: net[name].shape for name in ("conv", "pool", "dense")}
        batches["x"] = net.image_shape
        made = {name: empty((self.batch, *shape), np.float32) for name, shape in batches.items()}
        made |= {f"d{name}": empty(made[name].shape, np.float32) for name in batches if name != "x"}
        return made | {"y": empty(self.batch, np.int32)}

    def _sizes(self):
        """The sizes that the kernels of each layer take after their arrays."""
        n, net = self.batch, self._params.network
        conv, pool, dense = (net[name] for name in ("conv", "pool", "dense"))
        return (
            (n, *conv.input_shape, conv.layer.filters, conv.layer.kernel, 1),
            (n, *pool.input_shape, pool.layer.size, pool.layer.size),
            (n, math.prod(dense.input_shape), *dense.shape),
        )

    def _plain(self) -> list[list[Call]]:
        """One launch per operation of the contract."""
        n, net, a = self.batch, self._params.network, self._arrays()
        conv_w, conv_b, pool_w, pool_b, dense_w, dense_b = Parameters(net, flat=self._flat)
        conv_dw, conv_db, pool_dw, pool_db, dense_dw, dense_db = Parameters(net, flat=self._grads)
        conv_z, pool_z, dense_z = (self._xp.empty_like(a[k]) for k in ("conv", "pool", "dense"))
        conv_dz, pool_dz = self._xp.empty_like(conv_z), self._xp.empty_like(pool_z)
        conv, pool, dense = self._sizes()
        over, per = self._over, self._per
        calls = [
            self._take(a["x"], a["y"]),
            over("conv", "conv_forward", conv_z.size, a["x"], conv_w, conv_b, conv_z, *conv),
            over("elementwise", "sigmoid", conv_z.size, conv_z, a["conv"], conv_z.size),
            over("pool", "pool_forward", pool_z.size, a["conv"], pool_w, pool_b, pool_z, *pool),
            over("elementwise", "sigmoid", pool_z.size, pool_z, a["pool"], pool_z.size),
            per("dense", "dense_forward", n * net.classes, 64, a["pool"], dense_w, dense_b, dense_z,
                *dense),
            over("elementwise", "sigmoid", dense_z.size, dense_z, a["dense"], dense_z.size),
            over("elementwise", "cross_entropy", n, a["dense"], a["y"], a["ddense"],
                 self._losses, n, net.classes),
            over("dense", "dense_backward_weights", dense_w.size, a["pool"], a["ddense"], dense_dw,
                 *dense),
            per("conv", "conv_backward_bias", net.classes, 256, a["ddense"], dense_db, n,
                net.classes, 1),
            over("dense", "dense_backward_input", a["pool"].size, a["ddense"], dense_w,
                 a["dpool"], *dense),
            over("elementwise", "sigmoid_backward", pool_z.size, a["pool"], a["dpool"], pool_dz,
                 pool_z.size),
            per("pool", "pool_backward_weights", pool_w.size, 256, a["conv"], pool_dz, pool_dw,
                *pool),
            per("conv", "conv_backward_bias", len(conv_w), 256, pool_dz, pool_db, n, len(conv_w),
                math.prod(net["pool"].shape[1:])),
            over("pool", "pool_backward_input", conv_z.size, pool_dz, pool_w, a["dconv"], *pool),
            over("elementwise", "sigmoid_backward", conv_z.size, a["conv"], a["dconv"], conv_dz,
                 conv_z.size),
            per("conv", "conv_backward_weights", conv_w.size, 256, a["x"], conv_dz, conv_dw, *conv),
            per("conv", "conv_backward_bias", len(conv_w), 256, conv_dz, conv_db, n, len(conv_w),
                math.prod(net["conv"].shape[1:])),
            self._update(),
        ]  # fmt: skip
        return [[call] for call in calls]

    def _fused(self) -> list[list[Call]]:
        """Fused launches, which never write a preactivation; a layer's gradients share a stage."""
        n, net, a = self.batch, self._params.network, self._arrays()
        conv_w, conv_b, pool_w, pool_b, dense_w, dense_b = Parameters(net, flat=self._flat)
        conv_dw, conv_db, pool_dw, pool_db, dense_dw, dense_db = Parameters(net, flat=self._grads)
        conv, pool, dense = self._sizes()
        over, per = self._over, self._per
        return [
            [self._take(a["x"], a["y"])],
            [over("fused", "conv_sigmoid", a["conv"].size, a["x"], conv_w, conv_b, a["conv"],
                  *conv)],
            [over("fused", "pool_sigmoid", a["pool"].size, a["conv"], pool_w, pool_b, a["pool"],
                  *pool)],
            [per("fused", "dense_loss", n, 320, a["pool"], dense_w, dense_b, a["y"], a["ddense"],
                 self._losses, *dense[1:])],
            [over("fused", "dense_backward_sigmoid", a["pool"].size, a["ddense"], dense_w,
                  a["pool"], a["dpool"], *dense),
             over("dense", "dense_backward_weights", dense_w.size, a["pool"], a["ddense"],
                  dense_dw, *dense),
             per("conv", "conv_backward_bias", net.classes, 256, a["ddense"], dense_db, n,
                 net.classes, 1)],
            [over("fused", "pool_backward_sigmoid", a["conv"].size, a["dpool"], pool_w, a["conv"],
                  a["dconv"], *pool),
             per("pool", "pool_backward_weights", pool_w.size, 256, a["conv"], a["dpool"], pool_dw,
                 *pool),
             per("conv", "conv_backward_bias", len(conv_w), 256, a["dpool"], pool_db, n,
                 len(conv_w), math.prod(net["pool"].shape[1:]))],
            [per("conv", "conv_backward_weights", conv_w.size, 256, a["x"], a["dconv"], conv_dw,
                 *conv),
             per("conv", "conv_backward_bias", len(conv_w), 256, a["dconv"], conv_db, n,
                 len(conv_w), math.prod(net["conv"].shape[1:]))],
            [self._update()],
        ]  # fmt: skip

    def _take(self, x, y) -> Call:
        """Copy the next batch to x and y."""
        given = self._images, self._labels, self._order, self._position, x, y
        sizes = self.batch, x.size // self.batch, len(self._order)
        return self._over("fused", "take_batch", x.size, *given, *sizes)

    def _update(self) -> Call:
        """Subtract rate × mean gradient from the parameters, and go on to the next batch."""
        scale = self.rate / self.batch
        size, flat = self._flat.size, self._flat
        given = flat, self._grads, scale, size, self._position, self.batch, len(self._order)
        return self._over("fused", "update", size, *given)

    @staticmethod
    def _over(source: str, kernel: str, size: int, *arguments) -> Call:
        """A launch with one thread per element of `size`."""
        return cuda.load(source).prepare(kernel, (-(-size // 256),), (256,), *arguments)

    @staticmethod
    def _per(source: str, kernel: str, blocks: int, threads: int, *arguments) -> Call:
        """A launch with one block per result."""
        return cuda.load(source).prepare(kernel, (blocks,), (threads,), *arguments)
