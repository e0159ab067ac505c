"""The interpreter of pipeline schedules: a rank's tasks, in order, with their messages."""

from collections.abc import Sequence

import numpy as np

from cnnlab.distributed.model import Piece
from cnnlab.network import Network
from cnnlab.ranks.pipeline import Task
from cnnlab.ranks.schedules import block


def stages(network: Network, n: int) -> list[int]:
    """Where to cut the layers into n stages, the dearest as cheap as can be: n + 1 places.

    A layer costs its multiply-adds and its outputs. ValueError where there are fewer layers.
    """
    costs = [
        place.layer.multiply_adds(place.input_shape) + int(np.prod(place.shape))
        for place in network.places
    ]
    if not 1 <= n <= len(costs):
        raise ValueError(
            f"pipeline: expected at most {len(costs)} stages, as the network has so many layers, "
            f"got {n}"
        )
    best = {0: (0.0, [0])}  # by layers so far: the dearest stage, and the cuts
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

    `comm` has the pipeline's ranks alone. `most_held` says how many activations of a stage, each
    of a micro-batch, were held here at once.
    """

    def __init__(self, comm, tasks: Sequence[Task], pieces: dict[int, Piece], n_stages: int):
        self.comm, self.tasks, self.pieces, self.n_stages = comm, tasks, pieces, n_stages
        self.n_micro = 1 + max(task.micro for task in tasks)
        self.split = any(task.kind == "W" for task in tasks)
        self.most_held = 0

    def gradients(self, x: np.ndarray, labels: np.ndarray) -> float:
        """Loss of a batch, told by the last stage; the pieces add up their gradients."""
        self.kept, self.result, self.here, self.sent, self.loss = {}, {}, {}, [], 0.0
        do = {"F": self.forward, "B": self.backward, "W": self.weights}
        for kind, stage, i in self.tasks:
            mine = slice(*block(i, self.n_micro, len(labels)))
            if mine.start < mine.stop:  # a small batch fills few micro-batches
                do[kind](stage, i, x[mine], labels[mine])
            self.most_held = max(self.most_held, len(self.kept))
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
