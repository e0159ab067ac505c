import base64
import io
import re

import nbformat
import pytest
from PIL import Image

from cnnlab.course import commands, lesson
from cnnlab.course.images import without_loss
from tests.course.toy_lesson import GITHUB, toy


@pytest.fixture
def notebooks(tmp_path):
    folder = tmp_path / "notebooks"
    folder.mkdir()

    def add(name, nb):
        path = folder / f"{name}.ipynb"
        nbformat.write(nb, path)
        return path

    return folder, add


def test_run_goes_on_after_a_failing_lesson_and_leaves_pages(notebooks, tmp_path, capsys):
    folder, add = notebooks
    good = (
        "from cnnlab.course import record\nfrom cnnlab.measure.timing import Timing\n"
        "record('Toy', {'a': Timing('a', (2.0,)), 'b': Timing('b', (1.0,))}, base='a')\n"
        "import pathlib; print(pathlib.Path.cwd().name)"
    )
    bad = add("00_bad", toy("def f():\n    return 1 / 0", "print('so far')\nf()", "'never'"))
    fine = add("01_good", toy(good, text="$a \\le b$\n\n[back](00_bad.ipynb)\n\n$\\left(a$"))
    before = bad.read_bytes(), fine.read_bytes()

    build = tmp_path / "build"
    assert commands.run([], folder, build) == 1

    said = capsys.readouterr()
    assert "00_bad                   failed" in said.out
    assert "01_good                  done" in said.out
    assert "2.00× (2.00 to 2.00, n=1)" in said.out
    assert str(build / "index.html") in said.out
    for part in ("00_bad:", "cell 4: ", "return 1 / 0", "ZeroDivisionError"):
        assert part in said.err
    assert "01_good" not in said.err and "\x1b" not in said.err

    assert (bad.read_bytes(), fine.read_bytes()) == before
    index, page = (build / "index.html").read_text(), (build / "01_good.html").read_text()
    for part in ("00 · Toy", "See *how* it works.", "The network", 'class="failed"', "2.00×"):
        assert part in index
    assert "<math" in page and 'href="00_bad.html">back' in page and "\\left(a" in page
    assert ">notebooks\n" in page
    assert "ZeroDivisionError" in (build / "00_bad.html").read_text()
    assert (build / "01_good.ipynb").exists() and 'href="01_good.ipynb" download' in page


PLOT = """
from cnnlab.measure.claims import claim
from cnnlab.plots import plots
claim("Pigs fly.", 1 > 2)
plots.filters([[[1.0, -1.0], [0.5, 0.0]]], title='Two "filters" & more');
"""


def test_pages_describe_their_images_fold_answers_and_link_the_glossary(notebooks, tmp_path):
    folder, add = notebooks
    text = "[latency](glossary.md#latency) and [back](01_b.ipynb#x)\n\n<details>\n<summary>One"
    text += " way</summary>\n\n```python\nx = 1\n```\n\nso *there*\n\n</details>"
    add("00_toy", toy(PLOT, text=text))
    (folder / "glossary.md").write_text("# Glossary\n\n### latency\n\nTime.\n\n### false sharing")
    assert commands.run([], folder, tmp_path / "build") == 0
    page, glossary, index = (
        (tmp_path / "build" / f"{name}.html").read_text()
        for name in ("00_toy", "glossary", "index")
    )
    assert "No description has been provided" not in page + glossary + index
    assert (
        "Two 'filters' &amp; more. Labels: filter 0" in page and "filters&#39; &amp; more" in index
    )
    [width, *_] = [int(n) for n in re.findall(r'width="(\d+)"', page)]
    shown = base64.b64decode(re.search(r"base64,([^\"]+)", page)[1])
    assert Image.open(io.BytesIO(shown)).width == pytest.approx(2 * width, abs=1)
    assert 'href="glossary.html#latency"' in page and 'href="01_b.html#x"' in page
    assert 'id="latency"' in glossary and 'id="false-sharing"' in glossary
    folded = page.partition("<summary>One way</summary>")[2].partition("</details>")[0]
    assert "<em>there</em>" in folded and folded.count("<pre>") == 1
    assert "Not on this machine: Pigs fly." in page and 'href="glossary.html"' in index


def test_a_dead_kernel_is_a_failed_lesson(notebooks, tmp_path, capsys):
    folder, add = notebooks
    add("00_dies", toy("import os\nos._exit(3)"))
    assert commands.run([], folder, tmp_path / "build") == 1
    assert "00_dies:\n  cell 3: Kernel died" in capsys.readouterr().err


def test_render_makes_lessons_that_check_accepts(notebooks, capsys):
    folder, add = notebooks
    path = add("00_toy", toy("for i in range(3):\n    print(i, end='\\r', flush=True)", "1 + 1"))
    assert commands.check([], folder, GITHUB) == 1
    assert commands.render([], folder, GITHUB) == 0
    assert commands.check([], folder, GITHUB) == 0
    nb = nbformat.read(path, as_version=4)
    assert [c.execution_count for c in nb.cells if c.cell_type == "code"] == [1, 2, 3]
    assert nb.cells[2].outputs[0].text.strip() == "2"
    assert nb.cells[3].outputs[0].execution_count == 3

    rendered = path.read_bytes()
    assert commands.render([], folder, GITHUB) == 0
    assert path.read_bytes() == rendered

    capsys.readouterr()
    assert commands.check([], folder, None) == 1
    assert "outdated title, setup or kernel cell" in capsys.readouterr().err
    path.write_text(rendered.decode().replace("1 + 1", "1 + 2"))
    assert commands.check([], folder, GITHUB) == 1
    assert "edited after rendering" in capsys.readouterr().err


def test_stamp_writes_the_stamped_cells_anew_and_nothing_else(notebooks, capsys):
    folder, add = notebooks
    path = add("00_toy", toy("1 + 1"))
    assert commands.stamp([], folder, GITHUB) == 1  # never rendered
    assert "00_toy:\n  has to be run → make render LESSON=00_toy" in capsys.readouterr().err
    assert commands.render([], folder, None) == 0
    rendered = path.read_bytes()
    assert commands.stamp([], folder, GITHUB) == 0
    assert commands.check([], folder, GITHUB) == 0
    before, after = (nbformat.reads(t, as_version=4) for t in (rendered, path.read_bytes()))
    changed = [n for n, cell in enumerate(before.cells) if cell != after.cells[n]]
    assert changed == [0, 1] and before.cells[1].outputs == after.cells[1].outputs
    assert commands.stamp([], folder, None) == 0 and path.read_bytes() == rendered


@pytest.mark.parametrize("tag", ["kernel:loops.conv_forward", "kernel:nothing"])
def test_stamp_leaves_alone_a_lesson_whose_kernel_has_changed(notebooks, capsys, tag):
    folder, _ = notebooks
    nb = lesson.canonical(toy("def conv_forward(): 'an old copy'"))
    nb.cells[2].metadata["tags"] = [tag]
    path = folder / "00_toy.ipynb"
    path.write_text(lesson.to_text(nb))
    before = path.read_bytes()
    assert commands.stamp([], folder, None) == 1 and path.read_bytes() == before
    assert "00_toy:\n  " in capsys.readouterr().err


def test_render_stores_images_as_small_as_they_can_be(notebooks):
    folder, add = notebooks
    path = add("00_toy", toy(PLOT.replace("1 > 2", "2 > 1")))
    assert commands.render([], folder, None) == 0
    outputs = nbformat.read(path, as_version=4).cells[2].outputs
    (png,) = [base64.b64decode(o.data["image/png"]) for o in outputs if "data" in o]
    assert without_loss(png) == png


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
def test_render_leaves_a_lesson_with_a_problem_as_it_was(notebooks, capsys, source, problem):
    folder, add = notebooks
    path = add("00_toy", toy(source))
    before = path.read_bytes()
    assert commands.render([], folder, None) == 1
    assert path.read_bytes() == before
    assert problem in capsys.readouterr().err


def test_lessons_are_chosen_by_the_beginnings_of_their_names(notebooks, tmp_path):
    folder, add = notebooks
    with pytest.raises(ValueError, match=r"lessons: expected notebooks in .*, got none"):
        commands.find_lessons([], folder)
    paths = [add(name, toy()) for name in ("00_a", "01_b", "10_c")]
    assert commands.find_lessons([], folder) == paths
    assert commands.find_lessons(["1", "00"], folder) == [paths[0], paths[2]]
    with pytest.raises(
        ValueError, match="lessons: expected the beginning of one of 00_a, 01_b, 10_c, got '2'"
    ):
        commands.find_lessons(["2"], folder)
