from itertools import chain

import numpy as np
import pytest

from cnnlab.network import REPORT, Conv, Dense, MaxPool, Network, ReLU, Sigmoid
from cnnlab.training.search import Layers, network_of

SPACE = Layers({"rate": 0.1})


def test_genes_are_layers():
    genes = [["Conv", 8, 3, "ReLU"], ["MaxPool", 2], ["Dense", 32, "Sigmoid"]]
    layers = Conv(8, 3), ReLU(), MaxPool(2), Dense(32), Sigmoid(), Dense(10), Sigmoid()
    assert network_of(genes) == Network(layers)
    assert network_of([["Conv", 6, 5, "Sigmoid"]]).layers == (*REPORT[:2], *REPORT[-2:])


def test_every_draw_and_every_mutant_is_a_network_within_the_cap():
    rng = np.random.default_rng(0)
    for _ in range(20):
        config = SPACE.draw(rng)
        for _ in range(20):
            before, config = config, SPACE.mutate(config, rng)
            work = sum(network_of(config["genes"]).multiply_adds.values())
            assert work <= SPACE.work and config["rate"] == 0.1
            assert config["genes"] != before["genes"]


def test_a_mutant_differs_by_one_gene_and_leaves_its_parent_alone():
    rng = np.random.default_rng(1)
    parent = {"genes": [["Conv", 4, 5, "ReLU"], ["Pool", 2], ["Dense", 16, "ReLU"]]}
    kept, lengths = [list(gene) for gene in parent["genes"]], set()
    for _ in range(100):
        child = SPACE.mutate(parent, rng)["genes"]
        lengths.add(len(child))
        assert parent["genes"] == kept
        if len(child) == 3:
            pairs = zip(chain(*kept), chain(*child), strict=True)
            assert sum(a != b for a, b in pairs) == 1
        else:
            short, long = sorted((kept, child), key=len)
            assert any(long[:k] + long[k + 1 :] == short for k in range(len(long)))
    assert lengths == {2, 3, 4}


def test_a_cap_that_nothing_meets_is_told():
    with pytest.raises(ValueError, match="layers: expected one of 1000 draws to fit"):
        Layers({}, work=1).draw(np.random.default_rng(0))
