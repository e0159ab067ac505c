"""A training step layer by layer: a launch for each operation, or for a few that are fused."""

import math

import numpy as np

from cnnlab import cuda
from cnnlab.cuda.resident import Call, OnDevice
from cnnlab.network import Parameters


class Layerwise(OnDevice):
    """Launches of the strategy's kernels, one after the other. The arguments are `OnDevice`'s, and

    fused : whether sigmoids and the loss are part of the kernels before and after them
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
        sizes = self.batch, x.size // self.batch
        return self._over("fused", "take_batch", x.size, *given, *sizes)

    def _update(self) -> Call:
        """Subtract rate × mean gradient from the parameters, and go on to the next batch."""
        scale = self.rate / self.batch
        size, flat = self._flat.size, self._flat
        given = flat, self._grads, scale, size, self._position, self.batch
        return self._over("fused", "update", size, *given)

    @staticmethod
    def _over(source: str, kernel: str, size: int, *arguments) -> Call:
        """A launch with one thread per element of `size`."""
        return cuda.load(source).prepare(kernel, (-(-size // 256),), (256,), *arguments)

    @staticmethod
    def _per(source: str, kernel: str, blocks: int, threads: int, *arguments) -> Call:
        """A launch with one block per result."""
        return cuda.load(source).prepare(kernel, (blocks,), (threads,), *arguments)
