"""Lessons as they are stored: what is written into them, their canonical form, what is refused."""

import base64
import io
import sys
from datetime import datetime, timedelta

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from cnnlab.course import answers, execute, render
from cnnlab.runtime import setup
from tests.course.toy_lesson import GITHUB, SETUP, toy, write

PICTURE = """
import base64, io
from IPython.display import display
from PIL import Image
file = io.BytesIO()
Image.new("RGBA", (40, 40), (1, 2, 3, 255)).save(file, "png", compress_level=1)
png = {"image/png": base64.b64encode(file.getvalue()).decode()}
display(png, raw=True, metadata={"image/png": {"alt": "A square"}})
"""


def stream(text, name="stdout"):
    return new_output("stream", name=name, text=text)


# --- canonical form -----------------------------------------------------------------------------


def test_canonical_twice_is_canonical_once_and_survives_the_file():
    nb = toy("1", "1", "2")
    nb.metadata |= {"widgets": {"state": {}}, "language_info": {"version": "3.12.1"}}
    nb.cells[1].metadata["execution"] = {"iopub.execute_input": "2024-01-01"}
    nb.cells[2].outputs = [stream("a\n"), stream("b\r c\n", "stderr"), stream("1%\r2%\n")]
    nb.cells[3].metadata["tags"] = ["matter"]
    nb = render.canonical(nb)
    text = render.to_text(nb)
    assert render.to_text(render.canonical(nb)) == text
    assert render.to_text(render.canonical(nbformat.reads(text, as_version=4))) == text
    assert nb.metadata == render.METADATA and nb.cells[1].metadata == SETUP
    assert nb.cells[3].metadata == {"tags": ["matter"]} and nb.cells[2].metadata == {}
    ids = [cell.id for cell in nb.cells]
    assert len(set(ids)) == len(ids)
    assert render.canonical(toy("3", "1", "2")).cells[3].id != ids[3]  # no longer the second "1"


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
    cleaned = render.clean_outputs(outputs, 1)
    assert [(o.name, o.text) for o in cleaned] == [(o.name, o.text) for o in expected]


def took(seconds, source, tags=()):
    start = datetime(2024, 1, 1)
    times = {"iopub.execute_input": start, "shell.execute_reply": start + timedelta(0, seconds)}
    noted = {name: time.isoformat() + "Z" for name, time in times.items()}
    return new_code_cell(source, metadata={"execution": noted, "tags": list(tags)})


def test_slow_cells_say_in_coarse_steps_how_long_they_take():
    seconds = {
        4.9: "",
        5: "10 s",
        14.9: "10 s",
        15: "20 s",
        50: "1 min",
        100: "2 min",
        599: "5 min",
    }
    nb = new_notebook(cells=[took(time, "a = 1") for time in seconds])
    for _ in range(2):  # again, nothing changes
        render.note_durations(nb)
        for cell, about in zip(nb.cells, seconds.values(), strict=True):
            assert cell.source == (f"# takes about {about}\na = 1" if about else "a = 1")
    assert render.noted_seconds(nb) == 10 + 10 + 20 + 60 + 120 + 300
    nb.cells = [took(9, "%%px\na"), took(9, "b", ["setup"]), took(9, "c", ["kernel:loops.relu"])]
    nb.cells.append(took(1, "# takes about 10 s\nd"))
    render.note_durations(nb)
    assert [cell.source for cell in nb.cells] == ["%%px\n# takes about 10 s\na", "b", "c", "d"]


@pytest.mark.parametrize("alpha, mode", [(255, "RGB"), (254, "RGBA")])
def test_an_image_keeps_its_pixels_and_loses_bytes(alpha, mode):
    pixels = np.random.default_rng(0).integers(0, 255, (40, 60, 4), np.uint8)
    pixels[..., 3] = alpha
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png", compress_level=1)
    data = {"image/png": base64.b64encode(file.getvalue()).decode(), "text/plain": "a figure"}
    shown = new_output("display_data", data, metadata={"image/png": {"alt": "Noise"}})
    nb = new_notebook(cells=[new_markdown_cell("x"), new_code_cell("y", outputs=[shown])])
    render.lighten(nb)
    [output] = nb.cells[1].outputs
    small = base64.b64decode(output.data["image/png"])
    image = Image.open(io.BytesIO(small))
    assert len(small) < len(file.getvalue()) and image.mode == mode
    assert (np.asarray(image.convert("RGBA")) == pixels).all()
    assert output.data["text/plain"] == "a figure" and output.metadata == shown.metadata
    render.lighten(nb)
    assert output.data["image/png"] == base64.b64encode(small).decode()


# --- stamped cells ------------------------------------------------------------------------------


def test_the_badge_comes_and_goes_with_the_address():
    nb = toy()
    stamped = render.stamp(nb, "00_toy.ipynb", GITHUB)
    badge = stamped.cells[0].source.splitlines()[2]
    assert badge.endswith(f"({render.COLAB}/owner/name/blob/main/notebooks/00_toy.ipynb)")
    assert f'%pip install --quiet "cnnlab @ git+{GITHUB}"' in stamped.cells[1].source
    assert render.stamp(stamped, "00_toy.ipynb", GITHUB) == stamped
    assert render.stamp(stamped, "00_toy.ipynb", None) == nb
    elsewhere = render.stamp(stamped, "00_toy.ipynb", "https://git.host.org/a/b")
    assert "Colab" not in elsewhere.cells[0].source
    for each in (nb, stamped):
        assert (render.title(each), render.goal(each)) == ("00 · Toy", "See *how* it works.")
    nb.cells[1].metadata = {"tags": ["setup", "mpi"]}
    assert f'"cnnlab[mpi] @ git+{GITHUB}"' in render.stamp(nb, "x", GITHUB).cells[1].source


def test_a_lesson_without_title_or_setup_cell_is_refused():
    with pytest.raises(ValueError, match=r"x\.ipynb: expected a first cell of markdown"):
        render.stamp(new_notebook(cells=toy().cells[1:]), "x.ipynb", None)
    nb = toy()
    nb.cells[1].metadata = {}
    with pytest.raises(ValueError, match=r"x\.ipynb: expected the tag 'setup' on the first code"):
        render.stamp(nb, "x.ipynb", None)


@pytest.mark.parametrize(
    "address, installed, asked",
    [
        (None, True, ["ready"]),
        (GITHUB, True, ["ready"]),
        (GITHUB, False, [f'pip install --quiet "cnnlab @ git+{GITHUB}"', "ready"]),
        (None, False, None),
    ],
)
def test_the_setup_cell_installs_only_where_it_must(
    address, installed, asked, monkeypatch, tmp_path
):
    from IPython.core.inputtransformer2 import TransformerManager

    said = []

    class Shell:
        def run_line_magic(self, magic, line):
            said.append(f"{magic} {line}")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pydoc.locate", lambda name: setup.ready if installed or said else None)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setitem(sys.modules, "cnnlab", sys.modules["cnnlab"])
    monkeypatch.setattr(setup, "ready", lambda otherwise: said.append("ready"))
    source = render.setup_source(address, [])
    assert str(setup.PLACES).replace("'", '"') in source  # it looks where the package does
    code = TransformerManager().transform_cell(source)
    if asked:
        exec(code, {"get_ipython": Shell})
        assert said == asked
    else:
        with pytest.raises(SystemExit, match=render.OTHERWISE):
            exec(code, {"get_ipython": Shell})


def test_a_kernel_cell_shows_what_stands_in_the_package():
    nb = toy("def conv_forward(): 'an old copy'")
    nb.cells[2].metadata["tags"] = ["kernel:loops.conv_forward"]
    source = render.stamp(nb, "00_toy.ipynb", None).cells[2].source
    assert source.startswith("@numba.njit\ndef conv_forward(x, w, b, z, stride=1):")
    text = (render.PACKAGE / "kernels" / "loops.py").read_text(encoding="utf-8")
    assert f"\n{source}\n\n\n" in text
    for name in ("loops.nothing", "nowhere.conv_forward", "loops"):
        with pytest.raises(ValueError, match=f"expected module.function .* got '{name}'"):
            render.kernel_source(name)


def test_a_cuda_cell_compiles_the_kernel_with_its_comment_and_what_it_calls():
    text = (render.PACKAGE / "cuda" / "fused.cu").read_text(encoding="utf-8")
    source = render.kernel_source("fused.cu.dense_loss")
    first, helper, rest = source.split("\n", 2)
    assert first == "%%cuda dense_loss" and helper.startswith("__device__ float sigmoid_of(")
    assert f"\n\n{rest}\n\n" in text and rest.count("__global__") == 1
    assert "__device__" not in render.kernel_source("fused.cu.update")
    text = (render.PACKAGE / "cuda" / "step.cu").read_text(encoding="utf-8")
    first, rest = render.kernel_source("step.cu.convolve").split("\n", 1)
    assert first == "%%cuda convolve in step" and f"\n\n{rest}\n\n" in text
    for name in ("fused.cu.pool", "nowhere.cu.update"):
        with pytest.raises(ValueError, match=f"expected a kernel of cnnlab/cuda, got {name}"):
            render.kernel_source(name)


FILE = '''
"""The exercises of lesson 77."""
import numba

from cnnlab.check import kinds


def draw(x):
    """Not an exercise."""


@kinds.number("One.", "Two.")
def sum_of_both():
    """Both together
    make five."""
    first = 2  # apples
    return (
        first + 3
    )


@kinds.kernel("relu", "Above zero.")
@numba.njit(parallel=True)
def rectify(z, y):
    """Each element for itself."""
    for i in numba.prange(z.size):  # one task each
        y[i] = max(z[i], 0)


@kinds.cuda_c("relu", None, "Guard.")
def rectify_there():
    return """
__global__ void relu() {}
"""
'''


def test_model_answers_are_folded_in_order_as_one_would_write_them(tmp_path, monkeypatch):
    (tmp_path / "lesson_77.py").write_text(FILE.lstrip(), encoding="utf-8")
    monkeypatch.setattr(answers, "EXERCISES", tmp_path)
    total, rectify, there = answers.of_lesson("77_toy")
    first = "```python\nfirst = 2\nsum_of_both = first + 3\n```\n\nBoth together make five."
    assert total == first and there == "```cpp\n__global__ void relu() {}\n```"
    assert rectify.startswith(
        "```python\n@numba.njit(parallel=True)\ndef rectify(z, y):\n    for i"
    )
    assert "one task each" in rectify and rectify.endswith("```\n\nEach element for itself.")
    nb = toy("1")
    nb.cells.insert(3, new_markdown_cell("old", metadata={"tags": ["answers"]}))
    stamped = render.stamp(nb, "77_toy.ipynb", None)
    text = stamped.cells[3].source
    assert text.startswith("## One way to do it") and text.count("</details>") == 3
    assert text.index("Exercise 1") < text.index("first + 3") < text.index("Exercise 2")
    assert render.stamp(stamped, "77_toy.ipynb", None) == stamped
    with pytest.raises(ValueError, match=r"answers: expected .*lesson_78\.py, got none"):
        render.stamp(nb, "78_toy.ipynb", None)


# --- the commands -------------------------------------------------------------------------------


def test_a_rendered_lesson_is_as_checked_until_somebody_edits_it(tmp_path, capsys):
    source = "for i in range(3):\n    print(i, end='\\r', flush=True)"
    path = write(tmp_path, "00_toy", toy(source, "1 + 1", PICTURE))
    assert render.for_each("check", [], tmp_path, GITHUB) == 1
    for command in ("render", "check"):
        assert render.for_each(command, [], tmp_path, GITHUB) == 0
    nb = nbformat.read(path, as_version=4)
    assert [c.execution_count for c in nb.cells if c.cell_type == "code"] == [1, 2, 3, 4]
    assert nb.cells[2].outputs[0].text.strip() == "2"
    assert nb.cells[3].outputs[0].execution_count == 3
    png = base64.b64decode(nb.cells[4].outputs[0].data["image/png"])
    assert Image.open(io.BytesIO(png)).mode == "RGB"

    rendered = path.read_bytes()
    assert render.for_each("render", [], tmp_path, GITHUB) == 0 and path.read_bytes() == rendered
    assert render.for_each("stamp", [], tmp_path, None) == 0
    after = nbformat.read(path, as_version=4)
    changed = [n for n, cell in enumerate(nb.cells) if cell != after.cells[n]]
    assert changed == [0, 1] and nb.cells[1].outputs == after.cells[1].outputs
    capsys.readouterr()
    assert render.for_each("check", [], tmp_path, GITHUB) == 1
    assert "outdated title, setup or kernel cell" in capsys.readouterr().err
    path.write_text(path.read_text("utf-8").replace("See *how*", "Look *how*"), encoding="utf-8")
    assert render.for_each("check", [], tmp_path, None) == 1
    assert render.for_each("stamp", [], tmp_path, None) == 0  # prose needs no run
    assert render.for_each("check", [], tmp_path, None) == 0
    path.write_text(path.read_text("utf-8").replace("1 + 1", "1 + 2"), encoding="utf-8")
    capsys.readouterr()
    assert render.for_each("check", [], tmp_path, None) == 1
    said = capsys.readouterr().err
    assert "edited after rendering" in said and said.splitlines()[2].endswith(": cell 3")
    before = path.read_bytes()
    assert render.for_each("stamp", [], tmp_path, None) == 1 and path.read_bytes() == before
    assert "00_toy:\n  has to be run → make render LESSON=00_toy" in capsys.readouterr().err


def test_stamp_leaves_alone_a_lesson_whose_kernel_has_changed(tmp_path, capsys):
    nb = toy("def conv_forward(): 'an old copy'")
    for tag in ("kernel:loops.conv_forward", "kernel:nothing"):
        nb.cells[2].metadata["tags"] = [tag]
        path = write(tmp_path, "00_toy", nb)
        before = path.read_bytes()
        assert render.for_each("stamp", [], tmp_path, None) == 1 and path.read_bytes() == before
        assert "00_toy:\n  " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("print('/opt/data/file')", "cell 3 (print('/opt/data/file')) shows a path"),
        ("1 / 0", "ZeroDivisionError"),
        (
            "from cnnlab.measure.claims import claim\nclaim('Pigs fly.', 1 > 2)",
            "contrary: Pigs fly.",
        ),
        ("import matplotlib.pyplot as plt\nplt.plot([1]);", "an image without alternative text"),
    ],
)
def test_render_leaves_a_lesson_with_a_problem_as_it_was(tmp_path, capsys, source, problem):
    path = write(tmp_path, "00_toy", toy(source))
    before = path.read_bytes()
    assert render.for_each("render", [], tmp_path, None) == 1
    assert path.read_bytes() == before and problem in capsys.readouterr().err


def test_a_lesson_is_executed_in_place_in_its_folder(tmp_path, capsys):
    nb = toy("import os; print(os.getcwd(), os.environ.get('CNNLAB_RESULTS'))", "1 / 0", "'never'")
    nb.cells[-2].outputs, nb.cells[-2].execution_count = [], 9
    error = execute.execute(nb, tmp_path / "00_toy.ipynb", tmp_path / "results")
    assert error.startswith("cell 4: ") and "ZeroDivisionError" in error and "\x1b" not in error
    assert nb.cells[2].outputs[0].text == f"{tmp_path} {tmp_path / 'results'}\n"
    assert [cell.execution_count for cell in nb.cells[1:-1]] == [1, 2, 3, None]
    said = capsys.readouterr().out
    assert "00_toy                   running\n  00_toy                   failed" in said
    error = execute.execute(toy("import os\nos._exit(3)"), tmp_path / "00_toy.ipynb")
    assert error.startswith("cell 3: Kernel died")
