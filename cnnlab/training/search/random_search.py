"""Random search (Bergstra and Bengio, *Random Search for Hyper-Parameter Optimization*, 2012)."""

from cnnlab.training.search.protocol import Draw, Proposal, Search


class RandomSearch(Search):
    """Draw each configuration anew and train it for `epochs`: the base that others must beat."""

    def __init__(self, draw: Draw, epochs: int, budget: int, seed: int = 0):
        super().__init__(budget, seed)
        self.draw, self.epochs = draw, epochs

    def propose(self) -> Proposal:
        """A configuration that nothing told has any influence on."""
        return Proposal(self.draw(self.rng), self.epochs)
