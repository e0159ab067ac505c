"""What NVIDIA's compiler makes of each kernel, and how many a multiprocessor holds: no GPU needed.

`make gpu-report` prints it for a T4, an A100 and an H100.
"""

import io
import re
from typing import NamedTuple

from cnnlab import cuda
from cnnlab.runtime.arguments import table


class Limits(NamedTuple):
    """What a multiprocessor holds: warps, blocks, bytes of shared memory, and each block's fee."""

    warps: int
    blocks: int
    shared: int
    fee: int


# CUDA C++ Programming Guide, "Compute Capabilities": T4, A100, H100.
ARCHITECTURES = {
    "sm_75": Limits(32, 16, 64 << 10, 0),
    "sm_80": Limits(64, 32, 164 << 10, 1 << 10),
    "sm_90": Limits(64, 32, 228 << 10, 1 << 10),
}
SCHEDULERS, REGISTERS, UNIT = 4, 16384, 256  # registers of each scheduler; a warp takes whole units
# Threads of a block where they are not 256, and bytes of dynamic shared memory, as the kernels are
# launched for the report's network.
THREADS = {"image_gradients": 216, "dense_forward": 64, "dense_loss": 320, "conv_forward_tiled": 64}
DYNAMIC = {"bias_shared": 4 * 256, "bias_tree": 4 * 256, "conv_forward_tiled": 4 * 12 * 12}


class Compiled(NamedTuple):
    """A kernel's registers and bytes of local memory of a thread, bytes of a block's shared memory.

    Local memory has what found no register: spills, and arrays that are not indexed by constants.
    """

    registers: int
    local: int
    shared: int


def compiled(source: str, architecture: str) -> dict[str, Compiled]:
    """What NVRTC makes of a source's kernels, by name, for an architecture such as "sm_75".

    Raises RuntimeError if NVRTC is not installed.
    """
    try:
        from cuda import core
    except ImportError:
        raise RuntimeError(
            "NVIDIA's compiler is not installed: pip install 'cuda-core[cu12]', for Linux"
        ) from None
    said = io.StringIO()
    options = core.ProgramOptions(arch=architecture, std="c++17", ptxas_options=["-v"])
    core.Program(source, "c++", options).compile("cubin", logs=said)
    kernels = re.split(r"Compiling entry function '(\w+)'", said.getvalue())[1:]
    numbers = r"(\d+) bytes stack frame", r"Used (\d+) registers", r"(\d+) bytes smem"
    result = {}
    for name, text in zip(kernels[::2], kernels[1::2], strict=True):
        local, registers, shared = (re.search(number, text) for number in numbers)
        result[name] = Compiled(int(registers[1]), int(local[1]), int(shared[1]) if shared else 0)
    return result


def occupancy(threads: int, registers: int, shared: int, limits: Limits) -> float:
    """The warps of as many blocks as fit on a multiprocessor, as a share of the most that it holds.

    `threads` and bytes of `shared` memory are those of a block, `registers` those of a thread.
    """
    warps = -(-threads // 32)
    of_a_warp = -(-registers * 32 // UNIT) * UNIT
    blocks = [limits.warps // warps, limits.blocks]
    blocks.append(REGISTERS // of_a_warp * SCHEDULERS // warps)
    if shared:
        blocks.append(limits.shared // (shared + limits.fee))
    return min(blocks) * warps / limits.warps


def report() -> str:
    """A table with a row for each kernel; raises RuntimeError if NVRTC is not installed."""
    head = ["kernel", "threads", "shared"]
    for name in ARCHITECTURES:
        head += [f"{name}: registers", "local", "warps"]
    rows = [head]
    for file in sorted(cuda.SOURCES.glob("*.cu")):
        made = [compiled(file.read_text(encoding="utf-8"), name) for name in ARCHITECTURES]
        for kernel in made[0]:
            threads, dynamic = THREADS.get(kernel, 256), DYNAMIC.get(kernel, 0)
            row = [kernel, f"{threads}", f"{made[0][kernel].shared + dynamic:,}"]
            for results, limits in zip(made, ARCHITECTURES.values(), strict=True):
                registers, local, shared = results[kernel]
                share = occupancy(threads, registers, shared + dynamic, limits)
                row += [f"{registers}", f"{local}", f"{share:.0%}"]
            rows.append(row)
    return table(rows, "<" + ">" * (len(head) - 1))


if __name__ == "__main__":
    try:
        print(report())
    except RuntimeError as error:
        raise SystemExit(f"make gpu-report: {error}") from None
