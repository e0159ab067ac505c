"""Searching: many trainings at once, for hyperparameters and layers. Ask for a trial, tell a score.

Each method is a `Search`. `run` hands its trials to whoever is free; a `Journal` lets a search that
was killed go on.
"""

from cnnlab.training.search.evolution import Evolution
from cnnlab.training.search.halving import Halving
from cnnlab.training.search.hands import Engines, Here, Workers, run, search_on, serve
from cnnlab.training.search.journal import Done, Journal
from cnnlab.training.search.layers import Layers, network_of
from cnnlab.training.search.population import PopulationBased, truncation
from cnnlab.training.search.protocol import Generations, Proposal, Search, Trial
from cnnlab.training.search.random_search import RandomSearch
from cnnlab.training.search.space import Range, Space
from cnnlab.training.search.swarm import Swarm
from cnnlab.training.search.trainer import Result, Trainer

__all__ = [
    "Done", "Engines", "Evolution", "Generations", "Halving", "Here", "Journal", "Layers",
    "PopulationBased", "Proposal", "RandomSearch", "Range", "Result", "Search", "Space", "Swarm",
    "Trainer", "Trial", "Workers", "network_of", "run", "search_on", "serve", "truncation",
]  # fmt: skip
