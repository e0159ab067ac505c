from cnnlab.training.search import Evolution, Here, run
from tests.training.search.examples import hill


def draw(rng):
    return {"a": float(rng.uniform(1, 100)), "b": 0.0, "born": []}


def mutate(config, rng):
    return config | {"a": config["a"] * rng.choice([0.5, 0.9, 1.1]), "born": [config["a"]]}


def make(**options):
    return Evolution(draw, mutate, **{"epochs": 1, "budget": 40, "size": 4} | options)


def test_the_first_are_drawn_and_the_rest_are_children():
    done = run(make(), Here(hill))
    assert [not one.trial.config["born"] for one in done] == [True] * 4 + [False] * 36


def test_the_oldest_dies_however_good_it_was():
    search = make()
    trials = [search.ask() for _ in range(4)]
    for trial, score in zip(trials, [9.0, 1.0, 2.0, 3.0], strict=True):
        search.tell(trial, score)
    search.tell(search.ask(), 0.0)
    assert [score for score, _ in search.population] == [1.0, 2.0, 3.0, 0.0]


def test_the_parent_is_the_best_of_the_sample():
    search = make(sample=4)
    trials = [search.ask() for _ in range(4)]
    for trial, score in zip(trials, [1.0, 4.0, 2.0, 3.0], strict=True):
        search.tell(trial, score)
    assert search.ask().config["born"] == [trials[1].config["a"]]


def test_a_sample_of_one_is_drawn_blindly():
    search = make(sample=1, budget=400)
    trials = [search.ask() for _ in range(4)]
    for trial in trials:
        search.tell(trial, float(trial.number))
    parents = {search.ask().config["born"][0] for _ in range(60)}
    assert parents == {trial.config["a"] for trial in trials}
