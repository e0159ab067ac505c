"""Asynchronous successive halving, ASHA (Li and others, *A System for Massively Parallel
Hyperparameter Tuning*, 2020)."""

from cnnlab.runtime.arguments import at_least
from cnnlab.training.search.protocol import Draw, Proposal, Search, Trial


class Halving(Search):
    """Train many a little; of those on a rung, the best 1/η go on to the next, η times as long.

    The rungs are at `first`, η `first`, η² `first`, … epochs, up to `epochs`. Nobody waits for a
    rung to be full: whoever is among the best of those told so far may go on, and if nobody may, a
    new configuration begins. A promoted trial goes on from where it stopped.
    """

    keeps = True

    def __init__(
        self, draw: Draw, epochs: int, budget: int, seed: int = 0, *, first: int = 1, eta: int = 3
    ):
        super().__init__(budget, seed)
        at_least("first", first, 1)
        at_least("eta", eta, 2)
        self.draw, self.eta, self.rungs = draw, eta, [first]
        while self.rungs[-1] * eta <= epochs:
            self.rungs.append(self.rungs[-1] * eta)
        self.told = [{} for _ in self.rungs]  # on each rung, the scores by trial
        self.promoted: set[int] = set()
        self.rung: dict[int, int] = {}  # of each trial handed out
        self.configs: dict[int, dict] = {}

    def propose(self) -> Proposal:
        """Promote, from the highest rung on that has somebody to promote; else begin anew."""
        for k in reversed(range(len(self.rungs) - 1)):
            ranked = sorted(self.told[k], key=lambda n: (-self.told[k][n], n))
            for best in ranked[: len(ranked) // self.eta]:
                if best not in self.promoted:
                    self.promoted.add(best)
                    self.rung[self.asked] = k + 1
                    return Proposal(self.configs[best], self.rungs[k + 1] - self.rungs[k], best)
        self.rung[self.asked] = 0
        return Proposal(self.draw(self.rng), self.rungs[0])

    def tell(self, trial: Trial, score: float) -> None:
        """Rank the trial among the others of its rung."""
        self.told[self.rung[trial.number]][trial.number] = score
        self.configs[trial.number] = trial.config
