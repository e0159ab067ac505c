import numpy as np
import pytest

from cnnlab.ranks import cells


def test_a_cell_finds_its_names_and_its_last_expression_is_its_result():
    names = {"a": np.zeros(2), "shared": (1, 2)}
    results, record = cells.run_virtually("a += rank\nprint(shared)\na", names, 3, None)
    assert [text for _, text in results] == 3 * ["(1, 2)\n"]
    assert [result.tolist() for result, _ in results] == [[0, 0], [1, 1], [2, 2]]
    assert names["a"].tolist() == [0, 0] and (record.size, record.virtual) == (3, True)
    assert cells.run_virtually("rank;", {}, 1, None)[0] == [(None, "")]


def test_lines_are_those_of_the_cell_below_the_magic():
    with pytest.raises(SyntaxError) as error:
        cells.Program("x = 1\ny =")
    assert error.value.lineno == 3
