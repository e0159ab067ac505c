import pytest

from cnnlab.measure import optuna_peer, search_race


def test_what_was_recorded_had_the_same_plan_as_the_race():
    version, runs = optuna_peer.recorded()
    assert version[0].isdigit() and len(runs) == 5
    for done in runs:
        assert sum(one.trial.epochs for one in done) == search_race.BUDGET
        for one in done:
            for name, of in search_race.SPACE.items():
                assert of.low <= one.trial.config[name] <= of.high


def test_another_plan_is_refused(monkeypatch):
    monkeypatch.setattr(search_race, "BUDGET", 17)
    with pytest.raises(ValueError, match=r"search-optuna\.json: expected a record of"):
        optuna_peer.recorded()


def test_without_the_record_it_is_left_out_and_told(monkeypatch, tmp_path, capsys):
    series = {"random": []}
    assert list(optuna_peer.beside(series)) == ["random", f"optuna {optuna_peer.recorded()[0]}"]
    monkeypatch.setattr(optuna_peer, "FILE", tmp_path / "search-optuna.json")
    assert optuna_peer.beside(series) == series
    assert "optuna is left out: there is no search-optuna.json" in capsys.readouterr().out


def test_recording_asks_optuna(monkeypatch):
    pytest.importorskip("optuna")
    monkeypatch.setattr(search_race, "BUDGET", 2)
    monkeypatch.setattr(search_race, "EPOCHS", 1)
    found = optuna_peer.record([0], search_race.trainer(96, 50))
    (rows,) = found["runs"].values()
    assert len(rows) == 2 and all(set(row[0]) == set(search_race.SPACE) for row in rows)
