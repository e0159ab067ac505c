"""The four files of MNIST and of Fashion-MNIST: found or downloaded, checked, read."""

import gzip
import hashlib
import os
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from tqdm import TqdmWarning

from cnnlab.data.figures import read_toml
from cnnlab.runtime import failures, files
from cnnlab.runtime.files import replacing


class DataError(RuntimeError):
    """A file of a dataset is damaged or cannot be found. The message says which, and why."""


FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
BAR = {"total": 1, "unit": "B", "unit_scale": True, "leave": False, "delay": 0.5}
PATIENCE = 3.0  # seconds that a mirror may take to answer, and between two pieces of its answer
PLAIN_WORDS = {
    "ConnectionError": "the connection failed",
    "ConnectTimeout": "no connection in time",
    "ReadTimeout": "no answer in time",
    "ChunkedEncodingError": "the answer was cut short",
}


@dataclass(frozen=True)
class Published:
    """Where a dataset is published, and how to recognise it.

    `sums` are the SHA-256 of the decompressed FILES, because each mirror compresses differently.
    """

    mirrors: tuple[str, ...]
    sums: tuple[str, ...]
    class_names: tuple[str, ...]


PUBLISHED = {
    name: Published(**{key: tuple(texts) for key, texts in row.items()})
    for name, row in read_toml("published").items()
}
FAILED: dict[str, str] = {}  # downloads that failed in this process, so that "auto" waits only once


class NotHere(DataError):
    """A folder does not hold the dataset; another place may."""


class NotReachable(DataError):
    """No place has the dataset."""


def read_dataset(name: str, *, retry: bool = True) -> tuple[list[np.ndarray], str]:
    """The four uint8 arrays of FILES and where they were, from the first place that has them all.

    The places, in order: the folder in CNNLAB_DATA, the cache, the mirrors. With `retry` False, a
    download that has failed once in this process is not tried again. Raises NotReachable if none of
    them has, DataError if a file is damaged (one in the cache is deleted).
    """
    notes = []
    if folder := own_folder(name):
        source = "the folder in CNNLAB_DATA"
        try:
            return [read(folder, name, file) for file in FILES], source
        except NotHere as error:
            notes.append(f"not in {source} ({error})")
    source = "the cache"
    if missing := [file for file in FILES if find(files.folder(name), file) is None]:
        try:
            fetch_into_cache(name, missing, retry)
        except DataError as error:
            notes += [f"not in {source} (no {missing[0]})", str(error)]
            raise NotReachable(f"{name} is not available: {'; '.join(notes)}") from None
        source = "downloaded"
    return [read_cached(name, file) for file in FILES], source


def own_folder(name: str) -> Path | None:
    """The folder in CNNLAB_DATA that may hold the dataset, and is not ours to change."""
    given = os.environ.get("CNNLAB_DATA")
    try:
        folder = Path(given).expanduser() if given else None
    except RuntimeError:
        raise DataError(f"CNNLAB_DATA: expected a folder, got {given!r}") from None
    return folder / name if folder and (folder / name).is_dir() else folder


def find(folder: Path, file: str) -> Path | None:
    """The path of a file in a folder, gzipped or not; None if it is not there."""
    return next((p for p in (folder / f"{file}.gz", folder / file) if p.is_file()), None)


def read(folder: Path, name: str, file: str) -> np.ndarray:
    """The array in a file of a folder. Raises NotHere if there is none, DataError if it is bad."""
    path = find(folder, file)
    if path is None:
        raise NotHere(f"no {file}")
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: expected a readable file, got: {error.strerror}") from None
    return decode(raw, name, file, str(path))


def read_cached(name: str, file: str) -> np.ndarray:
    """The array in a file of the cache. Raises DataError if it is bad, and deletes it."""
    try:
        return read(files.folder(name), name, file)
    except DataError as error:
        path = find(files.folder(name), file)
        if path is None:  # another process has deleted it already
            raise
        path.unlink(missing_ok=True)
        raise DataError(f"{error}; deleted from the cache, the next load fetches it") from None


def decode(raw: bytes, name: str, file: str, where: str) -> np.ndarray:
    """The array in `raw`, gzipped or not. Raises DataError unless it is `file` of the dataset.

    The format is IDX: a header, which the sum has checked, then the values in C order, uint8.
    """
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (EOFError, OSError, zlib.error) as error:
            raise DataError(f"{where}: expected a whole gzip file, got: {error}") from None
    i, got = FILES.index(file), hashlib.sha256(raw).hexdigest()
    for other, published in PUBLISHED.items():
        if other != name and got == published.sums[i]:
            raise NotHere(f"{where}: expected {name}, got the file of {other}")
    if got != PUBLISHED[name].sums[i]:
        raise DataError(f"{where}: expected SHA-256 {PUBLISHED[name].sums[i]}, got {got}")
    images = "idx3" in file
    values = np.frombuffer(raw, np.uint8, offset=16 if images else 8)
    return values.reshape(-1, 28, 28) if images else values


def fetch_into_cache(name: str, missing: list[str], retry: bool) -> None:
    """Download the missing files, check them, and keep them in the cache.

    Raises DataError at the first file that no mirror has; those before it are kept.
    """
    if os.environ.get("CNNLAB_OFFLINE"):
        raise DataError("not downloaded, since CNNLAB_OFFLINE is set")
    if name in FAILED and not retry:
        raise DataError(FAILED[name])
    mirrors = list(PUBLISHED[name].mirrors)
    for file in missing:
        problems = []
        while len(problems) < len(mirrors):
            try:
                fetch(mirrors[0], name, file)
                break
            except DataError as error:
                problems.append(str(error))
                mirrors.append(mirrors.pop(0))  # the next files, too, ask the others first
        else:
            FAILED[name] = "; ".join(problems)
            raise DataError(FAILED[name])
    FAILED.pop(name, None)


def fetch(mirror: str, name: str, file: str) -> None:
    """Download a file of a dataset, check it, and keep it in the cache: the whole file or nothing.

    Raises DataError, naming the file and the mirror, if that fails or the file is bad.
    """
    with warnings.catch_warnings():  # pooch asks for notebook widgets, which are not needed
        warnings.simplefilter("ignore", TqdmWarning)
        import pooch
        import requests
    path, where = files.folder(name) / f"{file}.gz", f"{file}.gz from {urlsplit(mirror).netloc}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with failures.bar(desc=where, **BAR) as bar, replacing(path) as kept:
            get = pooch.HTTPDownloader(progressbar=bar, timeout=PATIENCE)
            get(f"{mirror}{file}.gz", kept, None)
            decode(Path(kept.name).read_bytes(), name, file, where)
    except requests.RequestException as error:
        kind, response = type(error).__name__, error.response
        status = "" if response is None else f" {response.status_code}"
        raise DataError(f"{where}: {PLAIN_WORDS.get(kind, kind)}{status}") from error
    except OSError as error:
        raise DataError(f"{path}: expected a cache to write to, got: {error.strerror}") from error
