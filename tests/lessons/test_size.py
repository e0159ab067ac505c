"""A lesson shows its matter and hides its plumbing: how much it imports, how long its cells are."""

import ast
import os
import shutil
import subprocess
import sys

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager
from nbformat import v4

from tests.source import FILES, NOTEBOOKS

MOST = {"names": 10, "attributes": 20, "lines": 40}
# Lessons that import more, or have longer cells. This list may only shrink.
NOT_YET = set()


def counts(nb) -> dict[str, int]:
    """Names from cnnlab, different `module.attribute` of it, and lines of the longest cell.

    A module is what has a file; attributes of other names, such as those of an object, are free.
    """
    sources = [cell.source for cell in nb.cells if cell.cell_type == "code"]
    names, attributes = {}, set()
    trees = [ast.parse(TransformerManager().transform_cell(source)) for source in sources]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] == "cnnlab":
            names |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        elif isinstance(node, ast.Import):
            names |= {
                a.asname or a.name: a.name
                for a in node.names
                if a.name.partition(".")[0] == "cnnlab"
            }
    modules = {name for name, whole in names.items() if whole.partition(".")[2] in FILES}
    for node in nodes:
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in modules:
            attributes.add(ast.unparse(node))
    longest = max((len(source.splitlines()) for source in sources), default=0)
    return {"names": len(names), "attributes": len(attributes), "lines": longest}


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_lesson_is_small_or_listed(path):
    result = counts(nbformat.read(path, as_version=4))
    over = {what: number for what, number in result.items() if number > MOST[what]}
    if path.stem.partition("_")[0] in NOT_YET:
        assert over, f"{path.stem} is small now: take it off the list NOT_YET"
    else:
        assert not over, f"{path.stem}: at most {MOST}"


def test_the_list_has_lessons_only():
    assert NOT_YET <= {path.stem.partition("_")[0] for path in NOTEBOOKS.glob("*.ipynb")}


def test_what_is_counted():
    cells = [
        "from cnnlab import check, data as d\nfrom cnnlab.network import Network\nimport os",
        "check.prove; check.prove; check.predict\nd.load().train_images\nNetwork.at",
        "import cnnlab.ranks.mpi as mpi\n%matplotlib inline\nmpi.SUM\nos.path\n\n\n# ...",
        "%%cuda mine\n" + "\n" * 49,
    ]
    nb = v4.new_notebook(cells=[v4.new_code_cell(source) for source in cells])
    assert counts(nb) == {"names": 4, "attributes": 4, "lines": 50}


def test_under_pytest_a_lesson_measures_with_few_repeats_and_others_as_asked(tmp_path):
    folder = tmp_path / "lessons"
    folder.mkdir()
    shutil.copy(NOTEBOOKS / "conftest.py", folder)
    cell = v4.new_code_cell("import os\nassert os.environ['CNNLAB_REPEATS'] == '1'")
    nb = v4.new_notebook(cells=[cell])
    nb.metadata["kernelspec"] = {"name": "python3", "display_name": "", "language": "python"}
    nbformat.write(nb, folder / "one.ipynb")
    test = "import os\ndef test(): assert 'CNNLAB_REPEATS' not in os.environ"
    (tmp_path / "test_other.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "--nbval-lax", "lessons", "test_other.py"]
    environment = {k: v for k, v in os.environ.items() if k != "CNNLAB_REPEATS"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout
