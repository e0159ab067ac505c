"""Ways in which ranks share the work of every layer, as chains of supersteps."""

from math import prod
from typing import NamedTuple

from cnnlab.distributed.model import FEATURES, cuts, length, shares
from cnnlab.measure.planner.machine import Kernel, Machine, network_work
from cnnlab.measure.planner.messages import allreduce, around, nothing, pieces
from cnnlab.measure.planner.problem import Problem
from cnnlab.measure.planner.supersteps import Chain, Superstep, after
from cnnlab.network import Network, Place
from cnnlab.ranks.schedules import block


class Sliced(NamedTuple):
    """A layer of which every rank holds a share: its part of each kind of task, as chains.

    `shared` adds up the gradients of parameters that all ranks have.
    """

    forward: Chain
    backward: Chain
    weights: Chain
    shared: Chain


def model(problem: Problem, machine: Machine, cut: str = "features") -> Chain:
    """Before each layer its input is gathered, behind it the input's gradient added up."""
    layers = sliced(problem.network, problem.n_ranks, problem.batch, machine, cut)
    return [step for layer in layers for part in layer for step in part]


def sliced(network: Network, size: int, batch: int, machine: Machine, cut: str) -> list[Sliced]:
    """Each layer of a network, cut among so many ranks, on a batch of images."""
    layers, found, travels = [], cuts(network, size, cut), shares(network, size, cut)
    for i, (place, work) in enumerate(zip(network.places, network_work(network), strict=True)):
        axis, ranges = found[i]
        _, extent, owned, needed = travels[i]
        images = batch * max(map(length, ranges)) / place.shape[axis - 1]
        each = 4 * batch * prod(place.input_shape) // extent
        came = pieces(owned, needed, each) if i else nothing(size)
        computing = [machine.computing(k, images) for k in (work.forward[:1], *work[1:])]
        forward = [Superstep(0.0, came), Superstep(computing[0], nothing(size))]
        if i == len(network.places) - 1:  # all outputs to every rank, which finds the loss of them
            outputs = pieces(ranges, [(0, network.classes)] * size, 4 * batch)
            loss = machine.computing(work.forward[1:], batch)
            forward += [Superstep(0.0, outputs), Superstep(loss, nothing(size))]
        back = [Superstep(computing[1], came.T)] if work.backward else []
        weights = [Superstep(computing[2], nothing(size))]
        shapes = place.layer.parameter_shapes(place.input_shape).values()
        sums = [allreduce(size, prod(shape)) for shape in shapes if axis != FEATURES]
        layers.append(Sliced(forward, back, weights, [s for of in sums for s in after(0.0, of)]))
    return layers


def layers(problem: Problem, machine: Machine) -> Chain:
    """Every rank a block of each operation's result, and the blocks around a ring to all."""
    size, batch, chain = problem.n_ranks, problem.batch, []
    for place, work in zip(problem.network.places, network_work(problem.network), strict=True):
        for kernel in work.forward + work.back:
            extent, n = result(kernel, place, batch)
            blocks = [length(block(rank, size, extent)) for rank in range(size)]
            share = max(blocks) / extent if n else 1
            chain.append(Superstep(machine.computing([kernel], batch * share), nothing(size)))
            if n:
                chain += after(0.0, around([4 * n // extent * its for its in blocks]))
    return chain


def result(kernel: Kernel, place: Place, batch: int) -> tuple[int, int]:
    """How long the axis is along which a result is cut into blocks, and the numbers that travel.

    As `kernels.partitioned` has it: images where a layer works element by element, else features,
    or of a fully connected layer's input all its numbers. The loss is found whole, on every rank.
    """
    inputs, n = prod(place.input_shape), prod(place.shape)
    if kernel.name == "cross_entropy":
        return 1, 0
    if place.layer.elementwise:
        return batch, batch * n
    if kernel.name.endswith(("_weights", "_bias")):
        weights, bias = place.layer.parameter_shapes(place.input_shape).values()
        return place.shape[0], prod(weights if kernel.name.endswith("_weights") else bias)
    if kernel.name.endswith("_forward"):
        return place.shape[0], batch * n
    dense = place.layer.operation == "dense"
    return (inputs if dense else place.input_shape[0]), batch * inputs
