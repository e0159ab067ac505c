"""Execute a lesson in a kernel of its own, with a line of progress."""

import asyncio
import os
import re
import signal
import sys
import time
from pathlib import Path

from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, DeadKernelError
from nbformat import NotebookNode
from tqdm import tqdm

from cnnlab.measure.claims import STRICT

CELL_TIMEOUT = 600  # seconds
SHARP = "--InlineBackend.print_figure_kwargs={'bbox_inches': 'tight', 'dpi': 200}"
BAR = "  {desc:<24} {bar:30} cell {n_fmt} of {total_fmt}, {elapsed}"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # of a traceback


def execute(
    nb: NotebookNode,
    path: Path,
    results: Path | None = None,
    *,
    strict: bool = False,
    sharp: bool = False,
) -> str | None:
    """Execute a notebook in place, top to bottom, and print when it starts and ends.

    The kernel works in the folder of its file `path`; `course.record` writes to `results`. If
    `strict`, a claim that does not hold here is an error; if `sharp`, figures have twice the dots
    each way. Returns None, or the error that stopped it: the number of the cell, and the traceback.
    Ctrl-C ends the kernel and raises KeyboardInterrupt.
    """
    live = sys.stdout.isatty()
    how = {"bar_format": BAR, "leave": False, "disable": not live, "file": sys.stdout}
    bar = tqdm(total=len(nb.cells), desc=path.stem, **how)

    def at_cell(cell: NotebookNode, cell_index: int) -> None:
        bar.n = cell_index
        bar.refresh()

    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        nb, timeout=CELL_TIMEOUT, kernel_name="python3", record_timing=True, on_cell_start=at_cell,
        resources={"metadata": {"path": str(path.parent)}},
        extra_arguments=["--log-level=ERROR", *[SHARP] * sharp],
    )  # fmt: skip
    env = os.environ | ({"CNNLAB_RESULTS": str(results)} if results else {})
    env |= {STRICT: "1"} if strict else {}
    stopped = False

    async def tick_until_done() -> None:
        lesson = asyncio.ensure_future(client.async_execute(env=env))

        def stop() -> None:
            nonlocal stopped
            stopped = lesson.cancel()

        await asyncio.sleep(0)  # the client installs its own handler first
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop)
        while not lesson.done():
            await asyncio.wait({lesson}, timeout=0.5)
            bar.refresh()
        await lesson

    if not live:
        print(f"  {path.stem:<24} running", flush=True)
    start, error = time.perf_counter(), None
    try:
        asyncio.run(tick_until_done())
    except (CellControlSignal, DeadKernelError, asyncio.CancelledError) as problem:
        error = f"cell {bar.n + 1}: {COLOUR.sub('', str(problem)).strip()}"
    bar.close()
    if stopped:
        raise KeyboardInterrupt
    seconds = time.perf_counter() - start
    print(f"  {path.stem:<24} {'failed' if error else 'done'} in {seconds:.0f} s", flush=True)
    return error
