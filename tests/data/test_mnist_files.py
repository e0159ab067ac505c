import gzip
import hashlib
import struct

import numpy as np
import pytest

from cnnlab.data import DataError, mnist
from cnnlab.data.mnist import FILES, read_dataset
from cnnlab.runtime import files


def as_idx(array):
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def fake_dataset(seed):
    """The raw bytes of the four files, tiny."""
    draw = np.random.default_rng(seed).integers
    shapes = {"train": 5, "t10k": 3}
    arrays = []
    for n in shapes.values():
        arrays += [draw(256, size=(n, 28, 28), dtype=np.uint8), draw(10, size=n, dtype=np.uint8)]
    return dict(zip(FILES, map(as_idx, arrays), strict=True))


RAW = {"mnist": fake_dataset(1), "fashion": fake_dataset(2)}


def publish(monkeypatch, name, mirrors=(), raw=None, system_folder=None):
    sums = tuple(hashlib.sha256(b).hexdigest() for b in (raw or RAW[name]).values())
    fake = mnist.Published(tuple(mirrors), sums, tuple("0123456789"), system_folder)
    monkeypatch.setitem(mnist.PUBLISHED, name, fake)


def fill(folder, contents):
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in contents.items():
        (folder / file).write_bytes(content)
    return folder


def zipped(name):
    return {f"{file}.gz": gzip.compress(raw) for file, raw in RAW[name].items()}


def assert_is(arrays, name):
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


@pytest.fixture
def server(mirror):
    mirror.answer = answer
    return mirror


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
    arrays, source = read_dataset("mnist")
    assert_is(arrays, "mnist")
    assert source == "downloaded"
    assert files_in(cache) == sorted(f"{file}.gz" for file in FILES)
    arrays, source = read_dataset("mnist")
    assert_is(arrays, "mnist")
    assert source == "the cache"
    assert len(server.asked) == 4


BAD = {
    "404": "HTTPError 404",
    "cut": "cut short",
    "truncated": "expected a whole gzip file",
    "corrupted": "expected SHA-256 ",
    "other": "expected mnist, got the file of fashion",
    "page": "that begins 00 00 08 03, got 16 bytes that begin 3c 68 74 6d",
    "silent": "no answer in time",
    "stalled": "the connection failed",
}


def hurry(monkeypatch, kind):
    if kind in ("silent", "stalled"):
        monkeypatch.setattr(mnist, "PATIENCE", 1.0)


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_mirror_is_left_for_the_next(server, cache, monkeypatch, kind):
    hurry(monkeypatch, kind)
    publish(monkeypatch, "mnist", [server.url(kind), server.url("good")])
    assert_is(read_dataset("mnist")[0], "mnist")
    assert [asked for asked, _ in server.asked] == [kind, *["good"] * 4]
    assert files_in(cache) == sorted(f"{file}.gz" for file in FILES)


@pytest.mark.parametrize("kind", BAD)
def test_nothing_is_left_when_all_mirrors_are_bad_and_the_next_try_works(
    server, cache, monkeypatch, kind
):
    hurry(monkeypatch, kind)
    publish(monkeypatch, "mnist", [server.url(kind), server.url("404", host="localhost")])
    with pytest.raises(DataError) as caught:
        read_dataset("mnist")
    port, file = server.server_port, f"{FILES[0]}.gz"
    assert f"{file} from 127.0.0.1:{port}: " in str(caught.value)
    assert BAD[kind] in str(caught.value)
    assert f"{file} from localhost:{port}: HTTPError 404" in str(caught.value)
    assert files_in(cache) == []
    publish(monkeypatch, "mnist", [server.url("good")])
    assert_is(read_dataset("mnist")[0], "mnist")


def test_only_what_is_missing_is_fetched(server, cache, monkeypatch):
    publish(monkeypatch, "mnist", [server.url("partial")])
    with pytest.raises(DataError, match="HTTPError 404"):
        read_dataset("mnist")
    assert files_in(cache) == sorted(f"{file}.gz" for file in FILES[:2])
    publish(monkeypatch, "mnist", [server.url("good")])
    assert_is(read_dataset("mnist")[0], "mnist")
    assert [file for kind, file in server.asked if kind == "good"] == [f"{f}.gz" for f in FILES[2:]]


def test_a_failed_download_is_tried_again_only_on_request(server, monkeypatch):
    publish(monkeypatch, "mnist", [server.url("404")])
    for retry, asked in ((False, 1), (False, 1), (True, 2), (False, 2)):
        with pytest.raises(DataError, match="HTTPError 404"):
            read_dataset("mnist", retry=retry)
        assert len(server.asked) == asked


def test_offline_asks_no_mirror(server, monkeypatch):
    publish(monkeypatch, "mnist", [server.url("good")])
    monkeypatch.setenv("CNNLAB_OFFLINE", "1")
    with pytest.raises(DataError, match="CNNLAB_OFFLINE is set"):
        read_dataset("mnist")
    assert server.asked == []


def test_a_write_that_fails_leaves_nothing(server, cache, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    publish(monkeypatch, "mnist", [server.url("good")])
    with monkeypatch.context() as patched:
        patched.setattr(files.os, "replace", full)
        with pytest.raises(DataError, match=r"train-images.*No space left on device"):
            read_dataset("mnist")
    assert files_in(cache) == []
    assert_is(read_dataset("mnist")[0], "mnist")


def test_a_bad_file_in_the_cache_is_deleted_and_fetched_again(server, cache, monkeypatch):
    publish(monkeypatch, "mnist", [server.url("good")])
    bad = f"{FILES[3]}.gz"
    fill(cache / "mnist", zipped("mnist") | {bad: b"\x1f\x8b nonsense"})
    with pytest.raises(DataError, match=rf"{bad}: expected a whole gzip file.*deleted from the"):
        read_dataset("mnist")
    assert files_in(cache) == sorted(f"{file}.gz" for file in FILES[:3])
    assert_is(read_dataset("mnist")[0], "mnist")
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
    arrays, source = read_dataset("mnist")
    assert_is(arrays, "mnist")
    assert source == "the folder in CNNLAB_DATA"


@pytest.mark.parametrize("contents", [{}, zipped("fashion"), dict(list(RAW["mnist"].items())[:3])])
def test_a_folder_without_the_dataset_is_passed_over(tmp_path, cache, monkeypatch, contents):
    fill(cache / "mnist", zipped("mnist"))
    monkeypatch.setenv("CNNLAB_DATA", str(fill(tmp_path / "mine", contents)))
    arrays, source = read_dataset("mnist")
    assert_is(arrays, "mnist")
    assert source == "the cache"


def test_the_systems_folder_is_found(tmp_path, monkeypatch):
    folder = fill(tmp_path / "system", zipped("fashion"))
    publish(monkeypatch, "fashion", system_folder=str(folder))
    arrays, source = read_dataset("fashion")
    assert_is(arrays, "fashion")
    assert source == "the system's datasets"


WRAP = (38871733, 1366428, 2431068)  # their product is 5 x 28 x 28 modulo 2 ** 64
LIES = {
    "one image more": (struct.pack(">4B3I", 0, 0, 8, 3, 6, 28, 28), "6 x 28 x 28 = 4704"),
    "one image fewer": (struct.pack(">4B3I", 0, 0, 8, 3, 4, 28, 28), "4 x 28 x 28 = 3136"),
    "overflowing": (struct.pack(">4B3I", 0, 0, 8, 3, *WRAP), "values"),
    "floats": (struct.pack(">4B3I", 0, 0, 13, 3, 5, 28, 28), "00 00 08 03"),
    "one dimension": (struct.pack(">4B3I", 0, 0, 8, 1, 5, 28, 28), "00 00 08 03"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_header_that_lies_is_found_even_under_the_right_sum(tmp_path, monkeypatch, lie):
    header, said = LIES[lie]
    raw = RAW["mnist"] | {FILES[0]: header + RAW["mnist"][FILES[0]][16:]}
    publish(monkeypatch, "mnist", raw=raw)
    monkeypatch.setenv("CNNLAB_DATA", str(fill(tmp_path / "mine", raw)))
    with pytest.raises(DataError, match=f"{FILES[0]}: expected .*{said}.*, got "):
        read_dataset("mnist")


def test_a_folder_of_a_user_who_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("CNNLAB_DATA", "~nosuchuser")
    with pytest.raises(DataError, match="CNNLAB_DATA: expected a folder, got '~nosuchuser'"):
        mnist.read_dataset("mnist")


def test_a_file_that_unpacks_without_end_is_cut_off(monkeypatch):
    monkeypatch.setattr(mnist, "MOST", 1000)
    with pytest.raises(DataError, match="bomb: expected"):
        mnist.decode(gzip.compress(bytes(10**8)), "mnist", mnist.FILES[0], "bomb")
