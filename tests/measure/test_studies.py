import pytest

from cnnlab.measure import studies


def test_a_study_is_run_once_and_replayed(tmp_path, monkeypatch):
    monkeypatch.setattr(studies, "MEASUREMENTS", tmp_path)
    cases, asked = [("a", 1), ("b", 2)], []

    def run(name, n):
        asked.append(name)
        return [name * n, n / 3]

    monkeypatch.setenv(studies.STUDY, "1")
    first = studies.study("t", run, cases)
    monkeypatch.delenv(studies.STUDY)
    again = studies.study("t", run, cases)
    assert first == again and asked == ["a", "b"] and first.machine
    assert again.results == {("a", 1): ["a", 1 / 3], ("b", 2): ["bb", 2 / 3]}
    summary = "processor  AMD EPYC: 2 cores\nvectors    AVX2\nalso       gcc; GPU: Tesla T4, 15 GiB"
    ran = again._replace(machine=summary)
    assert (ran.processor, ran.card) == ("AMD EPYC: 2 cores", "Tesla T4")
    with pytest.raises(ValueError, match=r"^cases: expected the 2 cases of study-t\.json"):
        studies.study("t", run, cases[:1])
