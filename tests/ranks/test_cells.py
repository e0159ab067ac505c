import pytest

from cnnlab.ranks import cells


def test_lines_are_those_of_the_cell_below_the_magic():
    with pytest.raises(SyntaxError) as error:
        cells.Program("x = 1\ny =")
    assert error.value.lineno == 3
