"""Two lessons in JupyterLab, in a real browser."""

import contextlib
import os
import shutil
import socket
import sys
import time
from urllib.request import urlopen

import nbformat
import psutil
import pytest

from tests.source import NOTEBOOKS, ROOT

pytestmark = pytest.mark.browser
LESSONS = "00_start_here", "30_cuda_grid"
SHOWN = "jupyterapp.shell.currentWidget"
CODE = f"[...{SHOWN}.content.model.cells].filter((cell) => cell.type === 'code')"
FAILED = (
    "({outputs}) => [...Array(outputs.length).keys()].some((i) => outputs.get(i).type === 'error')"
)
ENDED = f"{CODE}.at(-1).executionCount !== null || {CODE}.some({FAILED})"


@pytest.fixture(scope="module")
def lab(chromium, tmp_path_factory):
    """The folder of a JupyterLab with copies of two lessons, and its address."""
    folder = tmp_path_factory.mktemp("lab")
    for name in LESSONS:
        shutil.copy(NOTEBOOKS / f"{name}.ipynb", folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {f"JUPYTER_{what}_DIR": str(folder / what) for what in ("CONFIG", "DATA", "RUNTIME")}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += [f"--port={port}", "--ServerApp.port_retries=0", "--IdentityProvider.token="]
    command += ["--LabApp.expose_app_in_browser=True", f"--ServerApp.root_dir={folder}"]
    command += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    with open(folder / "log", "w") as log:
        about = {"cwd": folder, "stdout": log, "stderr": log, "start_new_session": True}
        environment = os.environ | own | {"PYTHONPATH": str(ROOT), "CNNLAB_OFFLINE": "1"}
        server = psutil.Popen(command, env=environment, **about)
    try:
        wait_for(f"http://127.0.0.1:{port}/api", server, folder / "log")
        yield folder, f"http://127.0.0.1:{port}/lab/tree"
    finally:
        left = stop(server)
    assert not left


def stop(server):
    """End a server, which ends its kernels; return what had to be killed."""
    if server.poll() is not None:
        return []
    started = [*server.children(recursive=True), server]
    server.terminate()
    _, left = psutil.wait_procs(started, timeout=30)
    for process in left:
        process.kill()
    return left


def wait_for(address, server, log):
    """Return once a server answers; AssertionError if it does not within a minute."""
    end = time.monotonic() + 60
    while server.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError):
            return urlopen(address, timeout=5).close()
        time.sleep(0.1)
    pytest.fail(log.read_text())


def test_two_lessons_run_in_jupyterlab_from_the_first_cell_to_the_last_twice(lab, chromium):
    folder, address = lab
    with contextlib.ExitStack() as stack:
        tabs = {}
        for name in LESSONS:
            tabs[name] = stack.enter_context(
                chromium.new_context(viewport={"width": 1280, "height": 800})
            ).new_page()
            tabs[name].goto(f"{address}/{name}.ipynb")
        for tab in tabs.values():
            tab.wait_for_function(f"{SHOWN}?.sessionContext.session?.kernel?.status === 'idle'")
        for _ in range(2):
            for tab in tabs.values():
                tab.get_by_role("button", name="Restart the kernel and run all cells").click()
                tab.locator(".jp-Dialog .jp-mod-accept").click()
                tab.wait_for_function(f"{CODE}.at(-1).executionCount === null")
            for name, tab in tabs.items():
                tab.wait_for_function(ENDED, timeout=300_000, polling=500)
                tab.keyboard.press("Control+s")
                tab.wait_for_function(f"!{SHOWN}.content.model.dirty")
                assert_ran(nbformat.read(folder / f"{name}.ipynb", as_version=4))


def assert_ran(nb):
    """Every cell of code has run, in order, in a kernel that was new, and none has failed."""
    code = [cell for cell in nb.cells if cell.cell_type == "code"]
    failed = [out.traceback for c in code for out in c.outputs if out.output_type == "error"]
    assert not failed, "\n".join(failed[0])
    assert [cell.execution_count for cell in code] == [*range(1, len(code) + 1)]
