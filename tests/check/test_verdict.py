import ast
import importlib
import re

import nbformat
import numpy as np
import pytest
from IPython.core.inputtransformer2 import TransformerManager

from cnnlab import check
from cnnlab.check import kinds
from cnnlab.check.verdict import number_verdict
from tests.source import NOTEBOOKS


@pytest.mark.parametrize(
    "got, passed, word",
    [
        (6.0, True, "apples: 6"),
        (5, False, "too small"),
        (7, False, "too large"),
        ("six", False, "apples: expected a number"),
        ([6, 6], False, "apples: expected a number"),
        (float("nan"), False, "apples: expected a number"),
        (np.float32(6), True, "apples: 6"),
        (6 + 1e-6, True, "apples: 6"),
        (6 + 1e-4, False, "too large"),
    ],
)
def test_an_answer_in_numbers(got, passed, word):
    verdict = number_verdict("apples", got, 6, 1e-6)
    assert verdict.passed is passed and word in verdict.text


def test_a_small_number_is_not_zero():
    assert number_verdict("s", 1e-9, 1e-9, 1e-6) and not number_verdict("s", 0, 1e-9, 1e-6)
    assert number_verdict("s", 5.9, 6, 0.05) and not number_verdict("s", 5.5, 6, 0.05)


def test_a_verdict_is_reported_and_required(capsys):
    right, wrong = check.Verdict(True, "as it should be"), check.Verdict(False, "not yet")
    assert right.report() is True and wrong.report() is False
    right.require()
    with pytest.raises(AssertionError, match="✗ not yet"):
        wrong.require()
    assert capsys.readouterr().out.splitlines() == [str(right), str(wrong), str(right)]


def test_under_strict_a_check_raises_where_it_would_return_false(monkeypatch, capsys):
    monkeypatch.setenv("CNNLAB_STRICT", "1")
    with pytest.raises(AssertionError, match=r"^✗ "):
        check.exercise("relu", lambda z, y: None)
    assert check.Verdict(True, "right").report() is True
    monkeypatch.setenv("CNNLAB_STRICT", "0")
    assert check.exercise("relu", lambda z, y: None) is False
    assert capsys.readouterr().out.count("✓") == 1


@pytest.mark.parametrize(
    "got, text",
    [
        ([1.0, 2.0, 4.0], "d[2]: expected 3, got 4; 1 of 3 elements differ"),
        ([1.0, np.nan, 3.0], "d[1]: expected 2, got NaN: it was not written, or was computed from"),
        ([-2.0, -4.0, -6.0], "all are -2 times the expected value"),
        ([np.nan] * 3, "d was never written"),
        ([1.0, 2.0], "d: expected shape (3,), got (2,)"),
    ],
)
def test_differences_are_said_in_words(got, text):
    expected, tolerance = np.array([1.0, 2.0, 3.0]), np.full(3, 1e-6)
    assert text in check.differences("d", np.array(got), expected, tolerance)
    assert check.differences("d", expected + 1e-7, expected, tolerance) == ""


def test_a_proof_that_fails_is_one_line_in_a_notebook(ipython, capsys):
    ipython.run_cell("from cnnlab.check.verdict import Verdict; Verdict(False, 'odd').require()")
    assert capsys.readouterr().out == "✗ odd\n"


# These raise under strict.
REPORTING = re.compile(r"check\..*\b(exercise|report)", re.DOTALL)


def test_no_lesson_wants_a_check_to_fail():
    """It would end under CNNLAB_STRICT: a lesson asks for the verdict instead, which never raises.

    So a check stands alone, or is just what an assert holds.
    """
    seen = 0
    for file in sorted(NOTEBOOKS.glob("*.ipynb")):
        module = importlib.import_module(
            "cnnlab.lessons." + f"lesson_{file.stem.partition('_')[0]}"
        )
        asked = {f"lesson.{n}" for n, it in vars(module).items() if isinstance(it, kinds.Exercise)}
        for cell in nbformat.read(file, as_version=4).cells:
            if cell.cell_type != "code" or cell.source.startswith("%%"):
                continue
            code = ast.parse(TransformerManager().transform_cell(cell.source))
            calls = [n for n in ast.walk(code) if isinstance(n, ast.Call)]
            names = [(c, ast.unparse(c.func)) for c in calls]
            checks = [c for c, name in names if name in asked or REPORTING.fullmatch(name)]
            alone = [n.value for n in ast.walk(code) if isinstance(n, ast.Expr)]
            alone += [n.test for n in ast.walk(code) if isinstance(n, ast.Assert)]
            assert not [c for c in checks if c not in alone], f"{file.name}: {cell.source}"
            seen += len(checks)
    assert seen > 40
