"""What NVIDIA's compiler makes of each kernel, and how many a multiprocessor holds: no GPU needed.

`make gpu-report` prints it for a T4, an A100 and an H100.
"""

import io
import re

from cnnlab import cuda
from cnnlab.runtime.arguments import table

# What a multiprocessor of a T4, an A100 and an H100 holds: warps, blocks, bytes of shared memory,
# of which each block costs a few more (CUDA C++ Programming Guide, "Compute Capabilities").
ARCHITECTURES = {
    "sm_75": (32, 16, 64 << 10, 0),
    "sm_80": (64, 32, 164 << 10, 1 << 10),
    "sm_90": (64, 32, 228 << 10, 1 << 10),
}
SCHEDULERS, REGISTERS, UNIT = 4, 16384, 256  # registers of each scheduler; a warp takes whole units
# Threads of a block where they are not 256, as the kernels are launched for the report's network.
THREADS = {"image_gradients": 216, "dense_forward": 64, "dense_loss": 320}


def compiled(source: str, architecture: str) -> dict[str, tuple[int, int, int]]:
    """What NVRTC makes of a source's kernels, by name, for an architecture such as "sm_75".

    Registers and bytes of local memory of a thread, which has what found no register; and bytes of
    a block's shared memory. Raises ImportError if NVRTC is not installed.
    """
    from cuda import core

    said = io.StringIO()
    options = core.ProgramOptions(arch=architecture, std="c++17", ptxas_options=["-v"])
    core.Program(source, "c++", options).compile("cubin", logs=said)
    kernels = re.split(r"Compiling entry function '(\w+)'", said.getvalue())[1:]
    numbers = r"Used (\d+) registers", r"(\d+) bytes stack frame", r"(\d+) bytes smem"
    return {
        name: tuple(sum(map(int, re.findall(number, text))) for number in numbers)
        for name, text in zip(kernels[::2], kernels[1::2], strict=True)
    }


def occupancy(threads: int, registers: int, shared: int, architecture: str) -> float:
    """The warps of as many blocks as fit on a multiprocessor, as a share of the most that it holds.

    `threads` and bytes of `shared` memory are those of a block, `registers` those of a thread.
    """
    most_warps, most_blocks, most_shared, fee = ARCHITECTURES[architecture]
    warps, of_a_warp = -(-threads // 32), -(-registers * 32 // UNIT) * UNIT
    by_registers = REGISTERS // of_a_warp * SCHEDULERS // warps
    by_shared = most_shared // (shared + fee) if shared else most_blocks
    return min(most_blocks, most_warps // warps, by_registers, by_shared) * warps / most_warps


def report() -> str:
    """A table with a row for each kernel; raises ImportError if NVRTC is not installed."""
    rows = [["kernel", "threads", "shared"]]
    for architecture in ARCHITECTURES:
        rows[0] += [f"{architecture}: registers", "local", "warps"]
    for file in sorted(cuda.SOURCES.glob("*.cu")):
        made = {name: compiled(file.read_text("utf-8"), name) for name in ARCHITECTURES}
        for kernel, (_, _, shared) in made["sm_75"].items():
            threads = THREADS.get(kernel, 256)
            row = [kernel, f"{threads}", f"{shared:,}"]
            for architecture, results in made.items():
                registers, local, _ = results[kernel]
                share = occupancy(threads, registers, shared, architecture)
                row += [f"{registers}", f"{local}", f"{share:.0%}"]
            rows.append(row)
    return table(rows, "<" + ">" * (len(rows[0]) - 1))


if __name__ == "__main__":
    try:
        print(report())
    except ImportError:
        raise SystemExit(
            "make gpu-report: NVIDIA's compiler is not installed: pip install 'cuda-core[cu12]'"
        ) from None
