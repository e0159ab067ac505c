"""MNIST's files: where they are looked for, how they are fetched, and when they are believed."""

import gzip
import hashlib
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from cnnlab.data import DataError, mnist
from cnnlab.data.mnist import FILES, read_dataset
from cnnlab.runtime import files


class Mirror(BaseHTTPRequestHandler):
    """Answers /KIND/FILE with `answer(KIND, FILE)`, sent in the way that KIND names.

    `cut`: half of it; `silent`: nothing for a long time; `stalled`: nothing after the first bytes;
    `dripping`: a few bytes at a time. None is "404 Not Found".
    """

    def do_GET(self):
        kind, file = self.path.strip("/").split("/")
        self.server.asked.append((kind, file))
        body, pause = answer(kind, file), self.server.closing.wait
        if body is None:
            self.send_error(404)
            return
        if kind == "silent":
            pause(20)
        self.send_response(200)
        self.send_header("Content-Length", str(50 * 8192 if kind == "dripping" else len(body)))
        self.end_headers()
        if kind == "stalled":
            self.wfile.write(body[:10])
            pause(20)
        elif kind == "dripping":
            # Something now and then keeps every socket's time-out from firing.
            for _ in range(50):
                if not pause(0.4):
                    self.wfile.write(bytes(8192))
        else:
            self.wfile.write(body[: len(body) // 2] if kind == "cut" else body)

    def log_message(self, *args):
        """Keep quiet."""


@pytest.fixture
def server(monkeypatch):
    """A mirror on this machine; `asked` lists the requests."""
    monkeypatch.setenv("NO_PROXY", "*")
    with ThreadingHTTPServer(("127.0.0.1", 0), Mirror) as server:
        server.asked, server.closing = [], threading.Event()
        server.handle_error = lambda *args: None  # clients that hang up are part of the tests
        server.url = lambda kind, host="127.0.0.1": f"http://{host}:{server.server_port}/{kind}/"
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.closing.set()
        server.shutdown()


def as_idx(array):
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def fake_dataset(seed):
    """The raw bytes of the four files, tiny."""
    draw = np.random.default_rng(seed).integers
    arrays = []
    for n in (5, 3):
        arrays += [draw(256, size=(n, 28, 28), dtype=np.uint8), draw(10, size=n, dtype=np.uint8)]
    return dict(zip(FILES, map(as_idx, arrays), strict=True))


RAW = {"mnist": fake_dataset(1), "fashion": fake_dataset(2)}


def publish(monkeypatch, name, mirrors=()):
    sums = tuple(hashlib.sha256(b).hexdigest() for b in RAW[name].values())
    fake = mnist.Published(tuple(mirrors), sums, tuple("0123456789"))
    monkeypatch.setitem(mnist.PUBLISHED, name, fake)


def fill(folder, contents):
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in contents.items():
        (folder / file).write_bytes(content)
    return folder


def zipped(name):
    return {f"{file}.gz": gzip.compress(raw) for file, raw in RAW[name].items()}


def assert_is(dataset, name, where="downloaded"):
    arrays, source = dataset
    assert source == where
    assert [as_idx(array) for array in arrays] == list(RAW[name].values())


def answer(kind, file):
    """What a mirror sends for a file of the fake MNIST: whole and right, or bad in some way."""
    raw = RAW["mnist"][file.removesuffix(".gz")]
    if kind == "404" or (kind == "partial" and file.startswith("t10k")):
        return None
    return {
        "truncated": gzip.compress(raw)[:-20],
        "corrupted": gzip.compress(raw[:-1] + bytes([raw[-1] ^ 1])),
        "other": gzip.compress(RAW["fashion"][file.removesuffix(".gz")]),
        "page": b"<html>Please log in to this network</html>",
    }.get(kind, gzip.compress(raw))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """No network, no folder of the user's, an empty cache."""
    monkeypatch.delenv("CNNLAB_DATA", raising=False)
    monkeypatch.delenv("CNNLAB_OFFLINE", raising=False)
    monkeypatch.setattr(mnist, "PATIENCE", 30.0)  # a loaded machine is no slow mirror
    monkeypatch.setattr(files, "folder", lambda name: tmp_path / "cache" / name)
    monkeypatch.setattr(mnist, "FAILED", {})
    publish(monkeypatch, "mnist")
    publish(monkeypatch, "fashion")
    return tmp_path / "cache"


def files_in(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_download_is_cached_and_read_from_there_afterwards(server, cache, monkeypatch):
    publish(monkeypatch, "mnist", [server.url("good")])
    for where in ("downloaded", "the cache"):
        assert_is(read_dataset("mnist"), "mnist", where)
        assert files_in(cache) == sorted(f"{file}.gz" for file in FILES)
    assert len(server.asked) == 4


BAD = {
    "404": "HTTPError 404",
    "cut": "the answer was cut short",
    "truncated": "expected a whole gzip file",
    "corrupted": "expected SHA-256 ",
    "other": "expected mnist, got the file of fashion",
    "page": "expected SHA-256 ",
    "silent": "no answer in time",
    "stalled": "the connection failed",
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_mirror_is_left_for_the_next_and_nothing_is_left_of_it(
    server, cache, monkeypatch, kind
):
    monkeypatch.setattr(mnist, "PATIENCE", 1.0 if kind in ("silent", "stalled") else 30.0)
    publish(monkeypatch, "mnist", [server.url(kind), server.url("404", host="localhost")])
    with pytest.raises(DataError) as caught:
        read_dataset("mnist")
    port, file = server.server_port, f"{FILES[0]}.gz"
    assert f"{file} from 127.0.0.1:{port}: " in str(caught.value)
    assert BAD[kind] in str(caught.value)
    assert f"{file} from localhost:{port}: HTTPError 404" in str(caught.value)
    assert files_in(cache) == []
    publish(monkeypatch, "mnist", [server.url(kind), server.url("good")])
    assert_is(read_dataset("mnist", retry=True), "mnist")
    assert [asked for asked, _ in server.asked][2:] == [kind, *["good"] * 4]
    assert files_in(cache) == sorted(f"{file}.gz" for file in FILES)


def test_only_what_is_missing_is_fetched(server, cache, monkeypatch):
    publish(monkeypatch, "mnist", [server.url("partial")])
    with pytest.raises(DataError, match="HTTPError 404"):
        read_dataset("mnist")
    assert files_in(cache) == sorted(f"{file}.gz" for file in FILES[:2])
    publish(monkeypatch, "mnist", [server.url("good")])
    assert_is(read_dataset("mnist"), "mnist")
    assert [file for kind, file in server.asked if kind == "good"] == [f"{f}.gz" for f in FILES[2:]]


def test_a_write_that_fails_leaves_nothing(server, cache, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    publish(monkeypatch, "mnist", [server.url("good")])
    with monkeypatch.context() as patched:
        patched.setattr(files.os, "replace", full)
        with pytest.raises(DataError, match=r"train-images.*No space left on device"):
            read_dataset("mnist")
    assert files_in(cache) == []
    assert_is(read_dataset("mnist"), "mnist")


def test_a_bad_file_in_the_cache_is_deleted_and_fetched_again(server, cache, monkeypatch):
    publish(monkeypatch, "mnist", [server.url("good")])
    bad = f"{FILES[3]}.gz"
    fill(cache / "mnist", zipped("mnist") | {bad: b"\x1f\x8b nonsense"})
    with pytest.raises(DataError, match=rf"{bad}: expected a whole gzip file.*deleted from the"):
        read_dataset("mnist")
    assert files_in(cache) == sorted(f"{file}.gz" for file in FILES[:3])
    assert_is(read_dataset("mnist"), "mnist")
    assert server.asked == [("good", bad)]


def test_a_bad_file_of_the_user_is_named_and_kept(server, tmp_path, monkeypatch):
    publish(monkeypatch, "mnist", [server.url("good")])
    raw = RAW["mnist"][FILES[1]]
    folder = fill(tmp_path / "mine", RAW["mnist"] | {FILES[1]: raw[:-1] + b"\xff"})
    monkeypatch.setenv("CNNLAB_DATA", str(folder))
    with pytest.raises(DataError, match=f"{folder / FILES[1]}: expected SHA-256"):
        read_dataset("mnist")
    assert files_in(folder) == sorted(FILES)
    assert server.asked == []


@pytest.mark.parametrize("subfolder", ["", "mnist"])
@pytest.mark.parametrize("contents", [RAW["mnist"], zipped("mnist")], ids=["plain", "gzipped"])
def test_the_users_folder_comes_first(tmp_path, cache, monkeypatch, subfolder, contents):
    fill(cache / "mnist", zipped("mnist"))
    fill(tmp_path / "mine" / subfolder, contents)
    monkeypatch.setenv("CNNLAB_DATA", str(tmp_path / "mine"))
    assert_is(read_dataset("mnist"), "mnist", "the folder in CNNLAB_DATA")


@pytest.mark.parametrize("contents", [{}, zipped("fashion"), dict(list(RAW["mnist"].items())[:3])])
def test_a_folder_without_the_dataset_is_passed_over(tmp_path, cache, monkeypatch, contents):
    fill(cache / "mnist", zipped("mnist"))
    monkeypatch.setenv("CNNLAB_DATA", str(fill(tmp_path / "mine", contents)))
    assert_is(read_dataset("mnist"), "mnist", "the cache")


def test_a_folder_of_a_user_who_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("CNNLAB_DATA", "~nosuchuser")
    with pytest.raises(DataError, match="CNNLAB_DATA: expected a folder, got '~nosuchuser'"):
        mnist.read_dataset("mnist")
