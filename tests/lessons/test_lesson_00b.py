import pytest

from cnnlab.lessons.lesson_00b import in_bytes, staircase


def test_values_stand_over_their_sizes_and_edges_are_named():
    ax = staircase(
        [1024, 4096], [(2, 1, 3), (8, 7, 9)], xlabel="size", ylabel="GB/s", edges={"L1": 2048}
    )
    line = ax.lines[0]
    assert list(line.get_xdata()) == [1024, 4096] and list(line.get_ydata()) == [2, 8]
    assert [text.get_text() for text in ax.texts] == ["L1"]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("size", "GB/s")


@pytest.mark.parametrize("size, text", [(1 << 14, "16 KiB"), (3 << 19, "1.5 MiB")])
def test_sizes_are_said_in_the_unit_that_suits_them(size, text):
    assert in_bytes(size) == text
