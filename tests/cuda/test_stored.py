"""Without a C++ compiler a lesson's cells show what is stored of them."""

import os
import subprocess
import sys

import nbformat
from nbformat import v4

KERNEL = "%%cuda mine\n__global__ void k(float* x) { x[0] = 1; }"
CELLS = [  # a source, and the output that is stored
    ("import sys, numpy as np\nsys.modules['ziglang'] = None\n%load_ext cnnlab.cuda", "loaded\n"),
    ("x = np.zeros(1, np.float32)\nlength = 3", ""),
    (KERNEL, ""),
    ("mine.launch('k', (1,), (1,), x)\nlength = x[0]\nprint(length)", "length 1\n"),
    ("print('so:', length + 1)", "so: 2\n"),
    ("x.size", "1"),
    ("from cnnlab import cuda\ncuda.load('dense')", "compiled\n"),
    ("unheard_of", "none\n"),
]
RUN = """
import nbformat
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="nocolor")
for k, cell in enumerate(nbformat.read("lesson.ipynb", 4).cells):
    print(f"§{k}")
    print("fails" if not shell.run_cell(cell.source).success else "")
print(shell.run_cell("1 / length").success)  # a cell that is not stored
"""


def test_cells_that_need_a_compiler_show_what_is_stored(tmp_path):
    made = [
        v4.new_code_cell(source, outputs=[v4.new_output("stream", text=text)] if text else [])
        for source, text in CELLS
    ]
    nbformat.write(v4.new_notebook(cells=made), tmp_path / "lesson.ipynb")
    without = {key: value for key, value in os.environ.items() if key != "CXX"}
    without["PATH"] = str(tmp_path)
    command = [sys.executable, "-c", RUN]
    done = subprocess.run(command, cwd=tmp_path, env=without, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    _, *shown = done.stdout.split("§")
    said = [text.partition("\n")[2] for text in shown]
    assert "install g++ or clang++" in said[0] and "fails" not in said[0]
    assert said[1].strip() == said[2].strip() == ""
    stored = "without a C++ compiler, as stored, from another machine:\n"
    assert said[3] == f"{stored}length 1\n\n" and said[4] == f"{stored}so: 2\n\n"
    assert "as stored" not in said[5] and said[6] == f"{stored}compiled\n\n"
    assert "NameError: name 'unheard_of'" in said[7] and "fails" in said[7]
    assert said[7].endswith("without a C++ compiler, and no output of this cell is stored\nTrue\n")
