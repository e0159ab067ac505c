"""Which options go with which way to train, before any rank has begun."""

import argparse
import math

import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.distributed import METHODS, options
from cnnlab.ranks.virtual import World
from cnnlab.training import Method, train


def chosen(words):
    parser = argparse.ArgumentParser(exit_on_error=False)
    options.add_options(parser)
    return parser.parse_args(words.split())


def test_what_was_given_goes_to_the_method():
    words = chosen("--ranks hybrid --grid 1x2x1 --schedule gpipe --micro-batches 3 --cut pixels")
    method = World(2).run(options.method(words))[0]
    assert (method.schedule, method.n_micro, method.by) == ("gpipe", 3, "pixels")
    given = {"grid": (1, 2, 1), "schedule": "gpipe", "n_micro": 3, "cut": "pixels"}
    assert options.given(words) == given and options.given(chosen("--ranks data")) == {}


def test_a_compressor_goes_with_data_parallelism():
    words = chosen("--ranks data --compress qsgd2")
    assert World(2).run(options.method(words))[0].compressed.size == 2
    with pytest.raises(argparse.ArgumentError, match="expected 2, 4 or 8 bits, got 3"):
        chosen("--compress qsgd3")


def test_averages_are_of_so_many_steps_along_a_graph_or_a_spring():
    algorithms = "local --every 4", "elastic --every 2 --moving-rate 0.3", "gossip --graph one-peer"
    local, elastic, gossip = (
        World(2).run(options.method(chosen(f"--ranks {words}")))[0] for words in algorithms
    )
    assert (local.every, elastic.every, gossip.every) == (4, 2, 1)
    assert (elastic.moving_rate, gossip.graph) == (0.3, "one-peer")


def test_staleness_is_a_number_of_steps_or_any():
    for words, staleness in (("", 0), ("--staleness 2", 2), ("--staleness any", math.inf)):
        way = options.method(chosen(f"--ranks server {words}"))
        assert World(2).run(way)[0].staleness == staleness
    with pytest.raises(argparse.ArgumentError, match="expected a whole number or any, got"):
        chosen("--ranks server --staleness 1.5")


def test_without_ranks_one_trains_alone():
    assert type(options.method(chosen(""))(None)) is Method


@pytest.mark.parametrize("name", METHODS)
def test_every_argument_of_a_method_has_an_option(name):
    arguments = set(options.arguments_of(METHODS[name])) - {"comm"}
    assert arguments <= {*options.ARGUMENTS.values()}


@pytest.mark.parametrize("n", [3, 4])
@pytest.mark.parametrize("name", [name for name in METHODS if name not in ("alone", "layers")])
def test_every_method_ends_with_the_same_parameters_on_each_rank(name, n):
    grid = f"--grid {n}x1x1" if name == "hybrid" else ""
    way, data = options.method(chosen(f"--ranks {name} {grid}")), load("digits", 60, 10)

    def trained(comm):
        return train(data, batch=12, method=way(comm), progress=False).params.flat

    first, *others = World(n).run(trained)
    assert all(np.array_equal(first, other) for other in others)


@pytest.mark.parametrize(
    "words, text",
    [
        ("--schedule gpipe", "--schedule: expected --ranks pipeline or hybrid with it, got none"),
        ("--ranks data --cut pixels", "--cut: expected --ranks model or hybrid with it, got data"),
        ("--ranks sharded --micro-batches 2", "--micro-batches: expected --ranks pipeline or"),
        ("--ranks server --lost go-on --virtual 3", "--lost: expected go-on without"),
        ("--ranks hybrid", "--grid: expected data × pipeline × model, such as 2x2x2, with"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words, text):
    with pytest.raises(ValueError, match=text):
        options.method(chosen(words))


@pytest.mark.parametrize("text", ["2x2", "2x2x0", "2x2x2x2", "axbxc", "-1x1x1"])
def test_a_grid_is_three_numbers(text):
    with pytest.raises(argparse.ArgumentTypeError, match="expected three numbers such as 2x2x2"):
        options.parse_grid(text)


def test_the_link_is_that_of_virtual_ranks_unless_another_is_asked_for():
    texts = "--ranks data", "--ranks data --virtual 2", "--ranks data --virtual 2 --link dgx1"
    assert [options.link(chosen(words)) for words in texts] == [None, "10us,1GB/s", "dgx1"]
