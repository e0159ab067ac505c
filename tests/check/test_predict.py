import decimal
import sys

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from cnnlab import check
from cnnlab.measure.timing import Ratio

WHY = {"why": "two cores share one memory"}


def message(capsys, *arguments, **options):
    check.predict(*arguments, **options)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "guess, line",
    [
        (5, "speedup: you guessed 5, it is 12.3: 2.47 times too low"),
        (np.float32(123.45), "speedup: you guessed 123, it is 12.3: 10 times too high"),
        (12.5, "speedup: you guessed 12.5, it is 12.3: as good as right"),
    ],
)
def test_a_number_is_compared_by_its_factor(capsys, guess, line):
    said = message(capsys, "speedup", guess, Ratio(12.345, 12, 13, 9), **WHY)
    assert said == f"{line}\nWhy: two cores share one memory\n"


def test_numbers_may_have_a_unit_and_any_size(capsys):
    said = message(capsys, "an epoch", 1234567, 1e-6, unit="ms")
    assert "you guessed 1230000 ms, it is 0.000001 ms" in said
    assert "e+" not in said and "Why" not in said


@pytest.mark.parametrize("guess", ["loops", "vector"])
def test_a_word_is_right_or_not(capsys, guess):
    said = message(capsys, "fastest", guess, "vector", among=["loops", "vector"], **WHY)
    assert said.startswith(f"fastest: you guessed {guess}, it is vector")
    assert ("right" in said) is (guess == "vector") and "Why: two cores" in said


@pytest.mark.parametrize("nothing", [..., None])
@pytest.mark.parametrize("among, measured", [((), 12.345), (("loops", "vector"), "vector")])
def test_nothing_is_given_away_without_a_guess(capsys, monkeypatch, nothing, among, measured):
    monkeypatch.delitem(sys.modules, "IPython")  # another test's shell
    said = message(capsys, "result", nothing, measured, among=among, **WHY)
    assert said.startswith("result: not guessed yet") and said.count("\n") == 1
    assert "12.3" not in said and "cores" not in said and "it is" not in said


def test_a_notebook_folds_the_answer_away(capsys):
    shell = InteractiveShell.instance()
    with capture_output() as shown:
        shell.run_cell(
            "from cnnlab import check\ncheck.predict('a<b', ..., 2.5, unit='ms', why='x')"
        )
    InteractiveShell.clear_instance()
    (output,) = shown.outputs
    assert "a<b: not guessed yet" in shown.stdout and "2.5" not in shown.stdout
    assert output.data["text/plain"] == "a<b: the answer is folded away"
    summary = "<summary>a&lt;b: the answer</summary>2.5 ms: x"
    assert output.data["text/html"] == f"<details>{summary}</details>"


@pytest.mark.parametrize(
    "guess",
    ["5", "five", True, [5], {"a": 5}, 0, -1, np.inf, np.nan, 1j, decimal.Decimal(5), print],
)
def test_what_is_no_number_is_told_so_and_learns_nothing(capsys, guess):
    said = message(capsys, "speedup", guess, 12.345, **WHY)
    assert said == f"speedup: expected a positive number, got {guess!r}\n"


@pytest.mark.parametrize("guess", [5, "Vector", "", ["vector"], True])
def test_what_is_no_such_word_is_told_the_words(capsys, guess):
    said = message(capsys, "fastest", guess, "vector", among=("loops", "vector"), **WHY)
    assert said == f"fastest: expected one of loops, vector, got {guess!r}\n"


@pytest.mark.parametrize("measured, among", [(0, ()), (np.nan, ()), ("threads", ("loops",))])
def test_a_lesson_that_measures_nonsense_fails(measured, among):
    with pytest.raises(ValueError, match="measured: expected"):
        check.predict("speedup", ..., measured, among=among)
    with pytest.raises(TypeError):
        check.predict("speedup", ..., [1, 2])
