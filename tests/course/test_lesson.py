import sys

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook, new_output

from cnnlab.course import lesson
from cnnlab.runtime import setup
from tests.course.toy_lesson import GITHUB, SETUP, toy


def executed(*outputs, source="work()"):
    """A toy lesson as if executed: the last code cell shows `outputs`."""
    nb = toy(source)
    nb.cells[1] |= {"execution_count": 1, "outputs": [stream("cnnlab 0\n")]}
    nb.cells[2] |= {"execution_count": 2, "outputs": list(outputs)}
    return lesson.canonical(nb)


def stream(text, name="stdout"):
    return new_output("stream", name=name, text=text)


def found_in(nb):
    return list(lesson.problems(nb))


# --- canonical form -----------------------------------------------------------------------------


def test_canonical_twice_is_canonical_once_and_survives_the_file():
    nb = executed(stream("a\n"), stream("b\r c\n", "stderr"), stream("d"), stream("1%\r2%\n"))
    text = lesson.to_text(nb)
    assert lesson.to_text(lesson.canonical(nb)) == text
    assert lesson.to_text(lesson.canonical(nbformat.reads(text, as_version=4))) == text
    nbformat.validate(nb)


def test_canonical_keeps_tags_and_drops_timestamps_and_widget_state():
    nb = toy("1")
    nb.metadata |= {"widgets": {"state": {}}, "language_info": {"version": "3.12.1"}}
    nb.cells[1].metadata["execution"] = {"iopub.execute_input": "2024-01-01"}
    nb = lesson.canonical(nb)
    assert nb.metadata == lesson.METADATA
    assert nb.cells[1].metadata == SETUP
    assert nb.cells[2].metadata == {}


def test_ids_follow_the_source_and_differ_for_equal_cells():
    first, again = (lesson.canonical(toy("1", "1", "2")) for _ in range(2))
    ids = [cell.id for cell in first.cells]
    assert ids == [cell.id for cell in again.cells]
    assert len(set(ids)) == len(ids)
    assert lesson.canonical(toy("3", "1", "2")).cells[3].id != ids[3]  # no longer the second "1"
    assert lesson.canonical(toy("1", "1", "4")).cells[:4] == first.cells[:4]


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ([stream("a"), stream("b")], [stream("ab")]),
        ([stream("a\n10%\r20%\r100%\nb")], [stream("a\n100%\nb")]),
        ([stream("1%"), stream("\r2%\n")], [stream("2%\n")]),
        ([stream("1%\r    \r"), stream("done")], [stream("done")]),
        ([stream("a"), stream("\r1%", "stderr"), stream("b")], [stream("ab")]),
        ([stream("a\r\nb\r\n")], [stream("a\nb\n")]),
        ([stream("warning\n", "stderr")], [stream("warning\n", "stderr")]),
    ],
)
def test_outputs_are_joined_and_progress_bars_collapsed(outputs, expected):
    cleaned = lesson.clean_outputs(outputs, 1)
    assert [(o.name, o.text) for o in cleaned] == [(o.name, o.text) for o in expected]


def test_a_result_carries_the_count_of_its_cell():
    result = new_output("execute_result", {"text/plain": "2"}, execution_count=9)
    assert executed(result).cells[2].outputs[0].execution_count == 2


# --- what may not be in a lesson ----------------------------------------------------------------


def test_a_good_lesson_has_no_problems():
    html = "<b>3</b></td></tr> 41.5 images/s and/or 1/2/3 <br/> https://host.org/a/b"
    html += '<img src="data:image/png;base64,+/aa/bb/cc+">'
    table = new_output("display_data", {"text/html": html, "image/png": "/aa/bb/cc"})
    assert found_in(executed(stream("0.19 M, /proc/cpuinfo, 0x1f\n"), table)) == []


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
    [found] = found_in(executed(output))
    assert found.startswith("cell 3 (work())")
    assert problem in found


@pytest.mark.parametrize(
    ("html", "bare"),
    [
        ("<p>no image", 0),
        ('<img src="a" alt="A ring of 4 ranks">', 0),
        ('<img src="a">', 1),
        ('<img alt="" src="a">', 1),
        ('<img alt="One"> <img src="b">', 1),
    ],
)
def test_images_in_html_need_an_alternative_text_too(html, bare):
    nb = executed(new_output("display_data", {"text/html": html}))
    assert len(list(lesson.undescribed(nb))) == bare


def test_counts_must_run_from_one_without_gaps():
    nb = executed(stream("a"))
    nb.cells[2].execution_count = 4
    assert found_in(nb) == ["cell 3 (work()): expected execution count 2, got 4"]
    nb.cells[2].execution_count = None
    assert found_in(nb) == ["cell 3 (work()): expected execution count 2, got None"]


def test_empty_cells_missing_outputs_missing_end_and_size_are_problems():
    assert "cell 3 is an empty code cell" in found_in(executed(source=" "))
    nb = executed()
    nb.cells[1].outputs = []
    assert found_in(nb) == ["has no outputs"]
    nb = executed(stream("a"))
    nb.cells.append(new_markdown_cell("## Further reading"))
    assert found_in(nb) == ["does not end with a section 'In this lesson we have'"]
    [found] = found_in(executed(stream("a " * (lesson.MAX_BYTES // 2))))
    assert found.startswith("size: expected at most 700,000 bytes, got 701,")


# --- stamped cells ------------------------------------------------------------------------------


def test_the_badge_comes_and_goes_with_the_address():
    nb = toy()
    stamped = lesson.stamp(nb, "00_toy.ipynb", GITHUB)
    badge = stamped.cells[0].source.splitlines()[2]
    assert badge.endswith(f"({lesson.COLAB}/owner/name/blob/main/notebooks/00_toy.ipynb)")
    assert f'%pip install --quiet "cnnlab @ git+{GITHUB}"' in stamped.cells[1].source
    assert lesson.stamp(stamped, "00_toy.ipynb", GITHUB) == stamped
    assert lesson.stamp(stamped, "00_toy.ipynb", None) == nb
    elsewhere = lesson.stamp(stamped, "00_toy.ipynb", "https://git.host.org/a/b")
    assert "Colab" not in elsewhere.cells[0].source
    for each in (nb, stamped):
        assert (lesson.title(each), lesson.goal(each)) == ("00 · Toy", "See *how* it works.")


def test_further_tags_of_the_setup_cell_are_extras():
    nb = toy()
    nb.cells[1].metadata = {"tags": ["setup", "mpi"]}
    assert f'"cnnlab[mpi] @ git+{GITHUB}"' in lesson.stamp(nb, "x", GITHUB).cells[1].source


def test_a_lesson_without_title_or_setup_cell_is_refused():
    with pytest.raises(ValueError, match=r"x\.ipynb: expected a first cell of markdown"):
        lesson.stamp(new_notebook(cells=toy().cells[1:]), "x.ipynb", None)
    nb = toy()
    nb.cells[1].metadata = {}
    with pytest.raises(
        ValueError, match=r"x\.ipynb: expected the tag 'setup' on the first code cell"
    ):
        lesson.stamp(nb, "x.ipynb", None)


def test_the_setup_cell_has_three_lines_which_look_where_the_package_does():
    source = lesson.setup_source(None, [])
    assert len(source.splitlines()) == 3
    assert str(setup.PLACES).replace("'", '"') in source


def run_setup(address, installed, monkeypatch, tmp_path):
    """Run the setup cell as IPython would, with a pip that only writes down what it is asked."""
    from IPython.core.inputtransformer2 import TransformerManager

    asked = []

    class Shell:
        def run_line_magic(self, magic, line):
            asked.append(f"{magic} {line}")

    def locate(name):
        return setup.ready if installed or asked else None

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pydoc.locate", locate)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setitem(sys.modules, "cnnlab", sys.modules["cnnlab"])
    monkeypatch.setattr(setup, "ready", lambda otherwise: asked.append("ready"))
    code = TransformerManager().transform_cell(lesson.setup_source(address, []))
    exec(code, {"get_ipython": Shell})
    return asked


@pytest.mark.parametrize("address", [None, GITHUB])
def test_the_setup_cell_installs_nothing_where_cnnlab_is(address, monkeypatch, tmp_path):
    assert run_setup(address, True, monkeypatch, tmp_path) == ["ready"]


def test_the_setup_cell_installs_from_the_address(monkeypatch, tmp_path):
    asked = run_setup(GITHUB, False, monkeypatch, tmp_path)
    assert asked == [f'pip install --quiet "cnnlab @ git+{GITHUB}"', "ready"]


def test_the_setup_cell_without_an_address_says_what_to_do(monkeypatch, tmp_path):
    with pytest.raises(SystemExit) as end:
        run_setup(None, False, monkeypatch, tmp_path)
    assert end.value.code == lesson.OTHERWISE


# --- kernels shown in a lesson --------------------------------------------------------------------


def test_a_kernel_cell_shows_the_kernel_as_it_stands_in_the_package():
    nb = toy("def conv_forward(): 'an old copy'")
    nb.cells[2].metadata["tags"] = ["kernel:loops.conv_forward"]
    source = lesson.stamp(nb, "00_toy.ipynb", None).cells[2].source
    assert source.startswith("@numba.njit\ndef conv_forward(x, w, b, z, stride=1):")
    text = (lesson.ROOT / "cnnlab" / "kernels" / "loops.py").read_text(encoding="utf-8")
    assert f"\n{source}\n\n\n" in text


def test_a_kernel_cell_may_show_a_method():
    source = lesson.kernel_source("distributed.server.Server.take")
    assert source.startswith("def take(self, shard") and "\n        self.comm.Recv(" in source
    assert source.endswith("\n    self.waiting.add(worker)")


def test_a_cuda_cell_compiles_the_kernel_with_its_comment_and_what_it_calls():
    text = (lesson.ROOT / "cnnlab" / "cuda" / "fused.cu").read_text(encoding="utf-8")
    source = lesson.kernel_source("fused.cu.pool_sigmoid")
    first, helper, rest = source.split("\n", 2)
    assert first == "%%cuda pool_sigmoid" and helper.startswith("__device__ float sigmoid_of(")
    assert rest.startswith("// Pooling and sigmoid") and rest.endswith("\n}")
    assert f"\n\n{rest}\n\n" in text and rest.count("__global__") == 1
    assert "__device__" not in lesson.kernel_source("fused.cu.update")
    text = (lesson.ROOT / "cnnlab" / "cuda" / "step.cu").read_text(encoding="utf-8")
    for name in ("convolve", "image_gradients"):
        first, rest = lesson.kernel_source(f"step.cu.{name}").split("\n", 1)
        assert first == f"%%cuda {name} in step" and f"\n\n{rest}\n\n" in text
        assert rest.startswith("// ") and rest.count("\n}") == 1
    for name in ("fused.cu.pool", "nowhere.cu.update"):
        with pytest.raises(ValueError, match=f"expected a kernel of cnnlab/cuda, got {name}"):
            lesson.kernel_source(name)


@pytest.mark.parametrize(
    "name", ["loops.nothing", "nowhere.conv_forward", "loops", "distributed.server.Server.nothing"]
)
def test_a_kernel_that_does_not_exist_is_named(name):
    nb = toy("...")
    nb.cells[2].metadata["tags"] = [f"kernel:{name}"]
    with pytest.raises(ValueError, match=f"expected module.function .* got '{name}'"):
        lesson.stamp(nb, "00_toy.ipynb", None)
