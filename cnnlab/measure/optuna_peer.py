"""Optuna as a peer: its samplers on the race's space, with the race's budget.

Optuna is no dependency: `record` needs it, and `python -m cnnlab.measure.optuna_peer` writes what it
finds to data/measurements, from where lesson 58 draws it.
"""

import json
from collections.abc import Sequence

from cnnlab.measure import search_race
from cnnlab.measure.bench import MEASUREMENTS
from cnnlab.training.search import Done, Trial

STARTUP = 4  # trials that are drawn; optuna's default of ten is more than there are
FILE = MEASUREMENTS / "search-optuna.json"


def record(seeds: Sequence[int], trainer=None) -> dict:
    """What optuna's TPE sampler finds, by seed: [config, score, test] for each trial."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    trainer, found = trainer or search_race.trainer(), {}
    n_trials = search_race.BUDGET // search_race.EPOCHS
    for seed in seeds:
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        rows = []
        for number in range(n_trials):
            asked = study.ask(distributions(optuna))
            trial = Trial(number, asked.params, search_race.EPOCHS, None, 1000 * seed + number)
            result = trainer(trial, None)
            study.tell(asked, result.score)
            rows.append([asked.params, result.score, result.report["test"]])
        found[str(seed)] = rows
    return {"optuna": optuna.__version__, "sampler": "TPESampler", "plan": plan(), "runs": found}


def plan() -> dict:
    """What was searched, and how long: a recording is comparable with a race of the same plan."""
    ranges = {name: [of.low, of.high] for name, of in search_race.SPACE.items()}
    return {
        "startup": STARTUP,
        "epochs": search_race.EPOCHS,
        "budget": search_race.BUDGET,
        "images": [search_race.N_TRAIN, search_race.N_HELD],
        "ranges": ranges,
    }


def distributions(optuna) -> dict:
    """The race's space in optuna's words."""
    kinds = optuna.distributions.FloatDistribution, optuna.distributions.IntDistribution
    return {
        name: kinds[of.whole](of.low, of.high, log=of.log) for name, of in search_race.SPACE.items()
    }


def recorded() -> tuple[str, list[list[Done]]]:
    """Optuna's version, and the runs that were recorded, as `run` returns them.

    Raises ValueError where they are of another plan than the race's.
    """
    kept = json.loads(FILE.read_text(encoding="utf-8"))
    if kept["plan"] != plan():
        raise ValueError(f"{FILE.name}: expected a record of {plan()}, got {kept['plan']}")
    runs = [
        [
            Done(Trial(n, config, search_race.EPOCHS, None, 0), score, {"test": test})
            for n, (config, score, test) in enumerate(rows)
        ]
        for rows in kept["runs"].values()
    ]
    return kept["optuna"], runs


def beside(series: dict[str, list]) -> dict[str, list]:
    """The runs of a race, and optuna's beside them; where the record is not here, it says so."""
    if not FILE.exists():
        print(f"optuna is left out: there is no {FILE.name}, which a clone of the course has")
        return dict(series)
    version, runs = recorded()
    return series | {f"optuna {version}": runs}


if __name__ == "__main__":
    FILE.write_text(json.dumps(record(range(5))) + "\n", encoding="utf-8")
