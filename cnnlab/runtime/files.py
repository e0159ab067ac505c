"""Files that are written whole or not at all."""

import contextlib
import functools
import hashlib
import os
import shutil
import sys
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from tqdm import TqdmWarning


@contextlib.contextmanager
def replacing(path: str | Path, *, one_writer: bool = False) -> Iterator[BinaryIO]:
    """Open a new file that replaces `path` once the `with` block has succeeded.

    Until then it lies beside `path` under another name; if the block raises, it is removed and
    `path` stays as it was. With `one_writer` that name is always the same, so that killed processes
    leave at most one such file. Raises OSError where it cannot be written.
    """
    path = Path(os.path.realpath(path))  # where it is a link, that stays
    name = hashlib.sha256(os.fsencode(path.name)).hexdigest()  # a long name has no room for more
    partial = path.with_name(f".{name[:16] if one_writer else uuid.uuid4().hex}-partial")
    try:
        with open(partial, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def check_writable(argument: str, path: str | Path) -> None:
    """Raise ValueError unless `replacing` can write to `path`; a file there stays as it is."""
    path = Path(os.path.realpath(path))
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"{argument}: expected a file in a folder that exists, got {path}")
    try:
        if path.exists():
            mode = path.stat().st_mode & 0o222  # which root is asked for, too
            if not (path.is_file() and mode and os.access(path, os.W_OK)):
                raise OSError("it is a device, or read-only")
        with open(path.with_name(f".{uuid.uuid4().hex}"), "xb") as file:
            Path(file.name).unlink()
    except OSError as error:
        raise ValueError(f"{argument}: expected a writable file, got {path}: {error}") from None


# --- what is kept between runs: data sets, and compiled kernels -----------------------------------


def folder(name: str) -> Path:
    """`data/cache` in the checkout of this package, where that can be written, else the user's."""
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "pyproject.toml").is_file() and os.access(checkout / "data", os.W_OK):
        return checkout / "data" / "cache" / name
    with warnings.catch_warnings():  # pooch asks for notebook widgets, which nobody needs
        warnings.simplefilter("ignore", TqdmWarning)
        import pooch
    return Path(pooch.os_cache("cnnlab")) / name


ROOMS = "kernels", "distributed/compressors"  # whose compiled functions are kept, and those of
ALSO = "ranks/sparse.py", "ranks/schedules.py", "cuda/emulator/cache.py", "lessons/lesson_06.py"


def source_files() -> list[Path]:
    """The files with the sources of all kernels that are kept, and of the compiler's options."""
    package = Path(__file__).parents[1]
    rooms = [file for room in ROOMS for file in sorted((package / room).rglob("*.py"))]
    return [package / "__init__.py", *(package / file for file in ALSO), *rooms]


def sources() -> str:
    """A digest of those files."""
    digest = hashlib.sha256()
    for file in source_files():
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


IMPORTED = sources()  # before any kernel is: to notice those that are edited later


def kernel_folder() -> Path:
    """Where the compiled kernels of just these sources are kept; those of others are removed.

    Numba looks only whether the file of a kernel has changed, not those of the kernels that it
    calls. So the folder's name says what is in all of them: no stale binary can be found. Each
    version of Numba has its own, as they would overwrite each other's files.
    """
    import numba

    own = folder("kernels") / f"{IMPORTED}-numba-{numba.__version__}"
    if not own.exists():
        for old in folder("kernels").glob("*"):
            if not old.name.startswith(IMPORTED):
                shutil.rmtree(old, ignore_errors=True)
    own.mkdir(parents=True, exist_ok=True)
    return own


def keep_compiled() -> None:
    """Let Numba keep what it compiles of the kernels imported so far, and find it the next time.

    Compiling the strategies takes a minute, loading them a second. Kernels that were edited since
    they were imported are not kept. Where nothing can be written, they run all the same.
    """
    numba = sys.modules.get("numba")
    if numba is None or numba.config.DISABLE_JIT:
        return
    kept = set(map(str, source_files()))
    new = [
        kernel
        for name, module in list(sys.modules.items())
        if getattr(module, "__file__", None) in kept
        for kernel in vars(module).values()
        if isinstance(kernel, numba.core.registry.CPUDispatcher)
        and (kernel.py_func.__module__ == name and not kernel.stats.cache_path)
    ]
    if not new or sources() != IMPORTED:
        return
    before = numba.config.CACHE_DIR
    try:
        numba.config.CACHE_DIR = str(kernel_folder())
        for kernel in new:
            kernel.enable_caching()
            keep_if_possible(kernel._cache)
    except OSError as error:
        not_kept(error.strerror)
    finally:
        numba.config.CACHE_DIR = before


def keep_if_possible(compiled) -> None:
    """Let a kernel's cache, one of Numba's, give up where a file cannot be written: a full disk."""
    save = compiled.save_overload

    def try_to_save(*what):
        try:
            save(*what)
        except OSError as error:
            compiled.disable()
            not_kept(error.strerror)

    compiled.save_overload = try_to_save


@functools.cache
def not_kept(reason: str) -> None:
    """Say, once for each reason, that compiled kernels are not kept."""
    warnings.warn(f"compiled kernels are not kept: {reason}", stacklevel=3)
