import os

import pytest

from cnnlab.course.execute import execute
from tests.course.toy_lesson import toy


def test_a_lesson_is_executed_in_place_in_its_folder(tmp_path, capsys):
    nb = toy("import os; print(os.getcwd(), os.environ.get('CNNLAB_RESULTS'))", "1 / 0", "'never'")
    nb.cells[-2].outputs, nb.cells[-2].execution_count = [], 9
    error = execute(nb, tmp_path / "00_toy.ipynb", tmp_path / "results")
    assert error.startswith("cell 4: ") and "ZeroDivisionError" in error and "\x1b" not in error
    assert nb.cells[2].outputs[0].text == f"{tmp_path} {tmp_path / 'results'}\n"
    assert [cell.execution_count for cell in nb.cells[1:-1]] == [1, 2, 3, None]
    assert "00_toy                   running\n  00_toy                   failed" in (
        capsys.readouterr().out
    )


def test_ctrl_c_ends_the_lesson_and_its_kernel(tmp_path):
    nb = toy(
        "import os, pathlib\npathlib.Path('pid').write_text(str(os.getpid()))",
        "import signal, time\nos.kill(os.getppid(), signal.SIGINT)\ntime.sleep(30)",
    )
    with pytest.raises(KeyboardInterrupt):
        execute(nb, tmp_path / "00_toy.ipynb")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
