"""Pipeline parallelism: each rank holds some of the layers, and micro-batches pass through them."""

from collections.abc import Sequence
from math import prod

import numpy as np

from cnnlab.distributed.holder import Holder, Part
from cnnlab.distributed.model import Piece
from cnnlab.network import Network
from cnnlab.ranks import Alone
from cnnlab.ranks.pipeline import SCHEDULES, Task, plan
from cnnlab.ranks.schedules import block
from cnnlab.training.replica import Replica


def stages(network: Network, n: int) -> list[int]:
    """Where to cut the layers into n stages, the most expensive as cheap as can be: n + 1 numbers.

    A layer costs its multiply-adds and outputs. ValueError for fewer layers, or for branches.
    """
    network.check_sequence()
    costs = [p.layer.multiply_adds(p.input_shape) + prod(p.shape) for p in network.places]
    if not 1 <= n <= len(costs):
        known = f"at most {len(costs)} stages, as the network has so many layers"
        raise ValueError(f"pipeline: expected {known}, got {n}")
    best = {0: (0.0, [0])}  # by layers so far: the most expensive stage, and the cuts
    for k in range(1, n + 1):
        best = {
            stop: min(
                (max(best[start][0], sum(costs[start:stop])), [*best[start][1], stop])
                for start in best
                if start < stop
            )
            for stop in range(k, len(costs) - (n - k) + 1)
        }
    return best[len(costs)][1]


class Pipe:
    """One rank of a pipeline: the stages that lie here, by number, and its list of tasks.

    `comm` has the pipeline's ranks alone.
    """

    def __init__(self, comm, tasks: Sequence[Task], pieces: dict[int, Piece], n_stages: int):
        self.comm, self.tasks, self.pieces, self.n_stages = comm, tasks, pieces, n_stages
        self.n_micro = 1 + max(task.micro for task in tasks)
        self.split = any(task.kind == "W" for task in tasks)

    def gradients(self, x: np.ndarray, labels: np.ndarray) -> float:
        """Loss of a batch, told by the last stage; the pieces add up their gradients."""
        self.kept, self.result, self.here, self.sent, self.loss = {}, {}, {}, [], 0.0
        do = {"F": self.forward, "B": self.backward, "W": self.weights}
        for kind, stage, i in self.tasks:
            mine = slice(*block(i, self.n_micro, len(labels)))
            if mine.start < mine.stop:  # a small batch fills few micro-batches
                do[kind](stage, i, x[mine], labels[mine])
        for request, _ in self.sent:
            request.Wait()
        return self.loss

    def forward(self, stage: int, i: int, x: np.ndarray, labels: np.ndarray) -> None:
        """Take a micro-batch up a stage; the last one begins the way back, too."""
        piece = self.pieces[stage]
        if stage:
            x = self.receive("F", stage - 1, i, piece.shape(piece.start - 1, len(x)), x.dtype)
        y, self.kept[stage, i] = piece.forward(x)
        if stage + 1 < self.n_stages:
            self.send(y, "F", stage, i, to=stage + 1)
        else:
            loss, self.here["B", self.n_stages, i] = piece.loss(y, labels)
            self.loss += loss

    def backward(self, stage: int, i: int, x: np.ndarray, labels: np.ndarray) -> None:
        """Take a micro-batch down a stage, and its weights' gradients unless they come later."""
        piece = self.pieces[stage]
        if piece.stop <= piece.network.first_learned:  # nobody below learns
            del self.kept[stage, i]
            return
        shape = piece.shape(piece.stop - 1, len(x))
        dy = self.receive("B", stage + 1, i, shape, x.dtype)
        dx, self.result[stage, i] = piece.backward(self.kept[stage, i], dy)
        if dx is not None:
            self.send(dx, "B", stage, i, to=stage - 1)
        if not self.split:
            self.weights(stage, i, x, labels)

    def weights(self, stage: int, i: int, x: np.ndarray, labels: np.ndarray) -> None:
        """Add the gradients of a stage's weights; its activations are not needed any more."""
        if (stage, i) in self.result:
            self.pieces[stage].add_gradients(self.kept.pop((stage, i)), self.result.pop((stage, i)))

    def send(self, array: np.ndarray, kind: str, stage: int, i: int, to: int) -> None:
        """Send what a task has found to the rank of another stage; do not wait for it."""
        if to % self.comm.size == self.comm.rank:
            self.here[kind, stage, i] = array
        elif array.size:
            tag = self.tag(kind, stage, i)
            self.sent.append((self.comm.Isend(array, to % self.comm.size, tag), array))

    def receive(self, kind: str, stage: int, i: int, shape: tuple, dtype) -> np.ndarray:
        """What the task of another stage has found, as soon as it is here."""
        if (kind, stage, i) in self.here:
            return self.here.pop((kind, stage, i))
        array = np.empty(shape, dtype)
        if array.size:
            self.comm.Recv(array, stage % self.comm.size, self.tag(kind, stage, i))
        return array

    def tag(self, kind: str, stage: int, i: int) -> int:
        """A number for the message of one task: ranks may take tasks in different orders."""
        return 2 * (stage * self.n_micro + i) + (kind == "B")


class Pipeline(Holder):
    """A batch passes through the ranks' stages as `n_micro` micro-batches, ordered by a schedule.

    Their gradients add up to those of the batch. A stage's layers are whole; `Hybrid` cuts them.
    """

    def __init__(self, comm, schedule: str = "1f1b", n_micro: int = 8):
        super().__init__(comm)
        self.arrange(comm, Alone(), "features", schedule, n_micro)

    def arrange(self, line, layer, by: str, schedule: str, n_micro: int) -> None:
        """Ranks of `line` are stages; those of `layer` share each layer `by` a cut, see CUTS."""
        self.line, self.layer, self.by = line, layer, by
        self.schedule, self.n_micro = schedule, n_micro
        self.plan = plan(schedule, line.size, n_micro)

    def cut(self, replica: Replica) -> np.ndarray:
        """The positions of the parameters of this rank's stages."""
        network, size, rank = replica.params.network, self.line.size, self.line.rank
        n_stages = size * SCHEDULES[self.schedule].chunks
        cuts = stages(network, n_stages)
        self.pieces = {
            s: Piece(network, replica.strategy, cuts[s], cuts[s + 1], self.layer, self.by)
            for s in range(rank, n_stages, size)
        }
        self.pipe = Pipe(self.line, self.plan[rank], self.pieces, n_stages)
        return np.concatenate([piece.positions for piece in self.pieces.values()])

    def begin(self, part: Part) -> None:
        """Let each stage compute with its share of the part's arrays."""
        n = 0
        for piece in self.pieces.values():
            mine = slice(n, n + len(piece.positions))
            piece.hold(part.params.flat[mine], part.grads.flat[mine])
            n = mine.stop

    def gradients(self, replica: Replica, part: Part, chosen: np.ndarray) -> float:
        """Loss of a batch, told by the last stage; gradients of this rank's stages."""
        x, labels = replica.strategy.take(replica.images, chosen), replica.labels[chosen]
        loss = self.pipe.gradients(x, labels)
        for piece in self.pieces.values():
            piece.add_shared()
        return loss


class ModelParallel(Pipeline):
    """All ranks take every batch; within each layer, they share it by features or by pixels.

    By features, a rank has some of the filters, so parameters and their gradients never travel;
    inputs do, and the partial sums of their gradients. By pixels, it has some rows of the maps, and
    a halo travels; the filters are the same everywhere, and their gradients are added up.
    """

    def __init__(self, comm, cut: str = "features"):
        Holder.__init__(self, comm)
        self.arrange(Alone(), comm, cut, "1f1b", n_micro=1)  # a pipeline of one stage


class Hybrid(Pipeline):
    """A grid of d × p × m ranks: d pipelines of p stages each, and m ranks within each layer.

    Pipelines share each batch. Rank (i, j, k) is i p m + j m + k: ranks of a layer are neighbours.
    """

    def __init__(
        self, comm, grid: tuple[int, int, int], schedule="1f1b", n_micro: int = 8, cut="features"
    ):
        Holder.__init__(self, comm)
        d, p, m = grid
        if d * p * m != comm.size:
            raise ValueError(
                f"grid: expected data × pipeline × model to be the {comm.size} ranks, "
                f"got {d} × {p} × {m} = {d * p * m}"
            )
        i, j, k = np.unravel_index(self.rank, (d, p, m))
        self.data = comm.Split(j * m + k)  # the same part of the network, other images
        line = comm.Split(i * m + k)  # the same images, other stages
        layer = comm.Split(i * p + j)  # the same images and stage
        self.arrange(line, layer, cut, schedule, n_micro if p > 1 else 1)  # one has no bubble

    def close(self) -> None:
        for comm in (self.data, self.line, self.layer):
            comm.Free()

    def gradients(self, replica: Replica, part: Part, chosen: np.ndarray) -> float:
        """Loss of this pipeline's share of a batch; gradients of the whole batch."""
        share = slice(*block(self.data.rank, self.data.size, len(chosen)))
        loss = super().gradients(replica, part, chosen[share])
        if self.data.size > 1:
            mine = part.grads.flat.copy()
            self.data.Allreduce(mine, part.grads.flat)
        return loss
