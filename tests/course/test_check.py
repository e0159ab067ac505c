"""What may not be in a lesson that is committed."""

import pytest
from nbformat.v4 import new_markdown_cell, new_output

from cnnlab.course import check, render
from tests.course.toy_lesson import toy


def executed(*outputs, source="work()"):
    """A toy lesson as if executed: the last code cell shows `outputs`."""
    nb = toy(source)
    nb.cells[1] |= {"execution_count": 1, "outputs": [stream("cnnlab 0\n")]}
    nb.cells[2] |= {"execution_count": 2, "outputs": list(outputs)}
    return render.canonical(nb)


def stream(text, name="stdout"):
    return new_output("stream", name=name, text=text)


def test_a_good_lesson_has_no_problems():
    html = "<b>3</b></td></tr> 41.5 images/s and/or 1/2/3 <br/> https://host.org/a/b"
    alt = {"image/png": {"alt": "A plot"}}
    table = new_output("display_data", {"text/html": html, "image/png": "/aa/bb/cc"}, metadata=alt)
    assert not list(check.problems(executed(stream("0.19 M, /proc/cpuinfo, 0x1f\n"), table)))


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        (stream("saved to /home/me/plot.png"), "path of this machine: /home/me/plot.png"),
        (stream("in '/mnt/course/x'"), "path of this machine: /mnt/course/x"),
        (stream("lib/site-packages/numba"), "path of this machine: site-packages"),
        (new_output("display_data", {"text/html": "<p> /tmp/x.y/z"}), "machine: /tmp/x.y/z"),
        (new_output("display_data", {"text/plain": "<A at 0x7f3a5c0012d0>"}), "0x7f3a5c0012d0"),
        (stream("careful\n", "stderr"), "standard error: careful"),
        (new_output("error", ename="KeyError", evalue="'x'"), "raised KeyError: 'x'"),
        (new_output("display_data", {"application/vnd.jupyter.widget-view+json": {}}), "widget"),
    ],
)
def test_a_bad_output_is_refused_with_the_name_of_its_cell(output, problem):
    [result] = check.problems(executed(output))
    assert result.startswith("cell 3 (work())") and problem in result


def test_counts_empty_cells_missing_outputs_missing_end_and_size_are_problems():
    nb = executed(stream("a"))
    nb.cells[2].execution_count = 4
    assert list(check.problems(nb)) == ["cell 3 (work()): expected execution count 2, got 4"]
    assert "cell 3 is an empty code cell" in check.problems(executed(source=" "))
    nb = executed()
    nb.cells[1].outputs = []
    assert list(check.problems(nb)) == ["has no outputs"]
    nb = executed(stream("a"))
    nb.cells.append(new_markdown_cell("## Further reading"))
    assert list(check.problems(nb)) == ["does not end with a section 'In this lesson we have'"]
    [result] = check.problems(executed(stream("a " * (check.MAX_BYTES // 2))))
    assert result.startswith("size: expected at most 700,000 bytes, got 701,")
