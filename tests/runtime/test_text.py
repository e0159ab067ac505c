import pytest

from cnnlab.runtime.arguments import table

ROWS = [("strategy", "seconds"), ("loops", "12.5"), ("device, fused", "0.3")]


def test_columns_are_aligned_and_lines_end_without_spaces():
    assert table(ROWS).split("\n") == [
        "strategy       seconds",
        "loops          12.5",
        "device, fused  0.3",
    ]


def test_numbers_go_right():
    assert table(ROWS, "<>").split("\n") == [
        "strategy       seconds",
        "loops             12.5",
        "device, fused      0.3",
    ]


@pytest.mark.parametrize("rows, align", [([("a", "b"), ("c",)], ""), ([("a", "b")], "<")])
def test_a_row_or_an_alignment_of_another_length_is_refused(rows, align):
    with pytest.raises(ValueError):
        table(rows, align)
