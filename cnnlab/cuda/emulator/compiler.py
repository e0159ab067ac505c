"""The C++ compiler of this machine, and what it says about a kernel."""

import atexit
import functools
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

import psutil

from cnnlab.runtime import files
from cnnlab.runtime.files import replacing

# A large array of a thread touches each page of its stack, and so meets the guard at the end.
ALWAYS = (
    "-std=c++17", "-fPIC", "-fstack-clash-protection", "-gdwarf-4", "-g2",
    "-fsanitize=integer-divide-by-zero,alignment,shift-exponent,float-cast-overflow",
    "-fvisibility=hidden", "-Werror=vla",
)  # fmt: skip
CLANG = ["-mllvm", "-tsan-instrument-read-before-write"]  # else no trace has such reads
PLAIN = ("-O1",)
RUNTIME = "device.h", "switch.h", "runtime.h", "faults.h", "tracer.h", "schedule.h"
HERE = Path(__file__).parent
ERRORS = 5  # shown at most: the first ones matter
UNKNOWN = re.compile(r"'(__\w+|[a-z]+[A-Z]\w*_sync|\w+_sync)' was not declared")
NONE = "there is no C++ compiler: install g++ or clang++, or pip install ziglang symbolic"


class NoCompiler(RuntimeError):
    """There is no C++ compiler on this machine."""


@functools.cache
def compiler() -> list[str]:
    """The command of a C++ compiler: CXX, as conda sets it, the system's, or that of ziglang.

    Raises NoCompiler without one.
    """
    for command in (shlex.split(os.environ.get("CXX", "")), ["g++"], ["clang++"], ["c++"]):
        if command and shutil.which(command[0]):
            said = subprocess.run([*command, "--version"], capture_output=True, text=True).stdout
            return command + CLANG * ("clang" in said)
    try:
        import ziglang
    except ImportError:
        raise NoCompiler(NONE) from None
    return [str(Path(ziglang.__file__).with_name("zig")), "c++", *CLANG]


def build(text: str, options: tuple[str, ...] = PLAIN) -> Path:
    """Compile C++ to a shared library, cached under a digest of its text and options.

    With -Wall among the options, the compiler's warnings about the kernel lie beside the library,
    see `warnings`. Raises RuntimeError with the compiler's errors, NoCompiler without one.
    """
    common = [option for option in ALWAYS if "sanitize" not in option]
    runtime = kept(joined(RUNTIME), [*compiler(), *common, *PLAIN, "-c"])
    return kept(text, [*compiler(), *ALWAYS, *options, "-c"], runtime)


@functools.cache
def joined(names: tuple[str, ...]) -> str:
    """The text of the emulator's headers of these names."""
    return "\n".join((HERE / name).read_text(encoding="utf-8") for name in names)


def kept(text: str, command: list[str], runtime: Path | None = None) -> Path:
    """The object of C++ or, linked with the runtime's, a library; compiled if it is not cached."""
    key = "\n".join([*command, str(runtime and runtime.name), text])
    name = hashlib.sha256(key.encode()).hexdigest()[:24] + (".so" if runtime else ".o")
    file, own = files.folder("cuda") / name, own_folder() / name
    if file.exists() or own.exists():
        return file if file.exists() else own
    made, result = compiled(text, command, runtime)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        store(file, made, result)
    except OSError as error:  # a full disk
        files.not_kept(error.strerror)
        store(file := own, made, result)
    return file


@functools.cache
def own_folder() -> Path:
    """A folder of this process, for libraries that the cache cannot take; removed at the end.

    Those of processes that were killed are removed by the next one that needs such a folder.
    """
    for old in Path(tempfile.gettempdir()).glob("cnnlab-cuda-*-*"):
        if not psutil.pid_exists(int(old.name.split("-")[2])):
            shutil.rmtree(old, ignore_errors=True)
    folder = tempfile.mkdtemp(prefix=f"cnnlab-cuda-{os.getpid()}-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def compiled(text: str, command: list[str], runtime: Path | None) -> tuple[bytes, str]:
    """An object of C++ or, with a runtime, a shared library, and the warnings about the kernel."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "kernel.cpp").write_text(text, encoding="utf-8")
        steps = [[*command, "kernel.cpp", "-o", "kernel.o"]]
        if runtime:  # link without the options: they would add the thread sanitizer's library
            steps += [[*compiler(), "-shared", "kernel.o", str(runtime), "-o", "kernel.so"]]
        environment, said = os.environ | {"LC_ALL": "C"}, ""
        for step in steps:
            done = subprocess.run(step, capture_output=True, text=True, env=environment, cwd=folder)
            said += done.stderr
            if done.returncode:
                raise RuntimeError("the CUDA source does not compile:\n" + errors(said, text))
        lines = said.splitlines() if "-Wall" in command else ()
        result = "\n".join(line for line in lines if "kernel.cu:" in line)
        return Path(folder, steps[-1][-1]).read_bytes(), result


def store(library: Path, made: bytes, result: str) -> None:
    """Write a library, and beside it the compiler's warnings if there are some."""
    if result:
        with replacing(library.with_suffix(".txt")) as file:
            file.write(result.encode())
    with replacing(library) as file:
        file.write(made)


def errors(said: str, text: str) -> str:
    """The compiler's errors, each with the line of the kernel that it is about."""
    lines = text.partition('#line 1 "kernel.cu"\n')[2].splitlines()
    result = []
    for line in [line for line in said.splitlines() if "error:" in line][:ERRORS]:
        place = re.search(r"kernel\.cu:(\d+)", line)
        source = lines[int(place[1]) - 1].strip() if place else ""
        if unknown := UNKNOWN.search(line):
            line = f"{line}: the emulator does not know {unknown[1]}"
        result.append(f"{line}\n    {source}" if source else line)
    return "\n".join(result)


def warnings(library: Path, kind: str) -> list[tuple[int, str]]:
    """The line and the text of each of the compiler's warnings of a kind, such as `[-Wunused]`."""
    file = library.with_suffix(".txt")
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    result = re.findall(r"kernel\.cu:(\d+):\d+: warning: (.*) \[-W([\w-]+)[]=]", text)
    return [(int(line), what) for line, what, name in result if re.fullmatch(kind, name)]


@functools.lru_cache(maxsize=256)
def source_lines(library: Path, base: int, where: tuple[int, ...]) -> list[int]:
    """The line of the CUDA source for each place in the machine code; 0 where it is unknown."""
    tools = os.environ.get("ADDR2LINE", ""), "addr2line", "llvm-symbolizer", "llvm-addr2line"
    tool = next(filter(shutil.which, tools), None)
    # A return address points to the next instruction, so look one byte before it.
    places = [place - base - 1 for place in where]
    if not where or tool is None:
        return symbolised(library, places)
    command = [tool, "-a", "-i", "-e", str(library), *map(hex, places)]
    done = subprocess.run(command, capture_output=True, text=True)
    # For each address the places that it was inlined to, innermost first: helpers, then the kernel.
    groups = re.split(r"^0x\w+$", done.stdout, flags=re.MULTILINE)[1:]
    result = [re.search(r"kernel\.cu:(\d+)", group) for group in groups]
    return [int(place[1]) if place else 0 for place in result]


def symbolised(library: Path, places: list[int]) -> list[int]:
    """The same where there are no tools, as beside ziglang: by the package symbolic, if there."""
    if not places or not find_spec("symbolic"):
        return [0] * len(places)
    from symbolic import Archive

    symbols = next(Archive.open(str(library)).iter_objects()).make_symcache()
    each = ({Path(at.full_path).name: at.line for at in symbols.lookup(p)[::-1]} for p in places)
    return [lines.get("kernel.cu", 0) for lines in each]
