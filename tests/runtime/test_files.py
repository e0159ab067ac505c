import os
import stat
import subprocess
import sys

import pytest

from cnnlab.runtime import files
from cnnlab.runtime.files import replacing


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_once_the_block_has_ended(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("old")
    with replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new" and names(tmp_path) == ["a.json"]


def test_a_block_that_raises_leaves_everything_as_it_was(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), replacing(str(path)) as file:
        file.write(b"half of ")
        raise KeyboardInterrupt
    assert path.read_text() == "old" and names(tmp_path) == ["a.json"]


def test_nothing_is_left_where_the_file_cannot_be_replaced(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "replace", full)
    with pytest.raises(OSError, match="No space"), replacing(tmp_path / "a") as file:
        file.write(b"new")
    assert names(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="permissions as on Unix")
def test_the_file_can_be_read_by_those_whom_the_umask_allows(tmp_path):
    before = os.umask(0o022)
    try:
        with replacing(tmp_path / "a"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644


def test_several_processes_may_write_at_once(tmp_path):
    path = tmp_path / "a"
    with replacing(path) as first:
        first.write(b"the first, which is longer")
        with replacing(path) as second:
            second.write(b"the second")
            assert len(names(tmp_path)) == 2
        assert path.read_bytes() == b"the second"
    assert path.read_bytes() == b"the first, which is longer" and names(tmp_path) == ["a"]


def test_killed_writers_leave_one_file_where_there_is_one_writer(tmp_path):
    program = (
        "import os; from cnnlab.runtime.files import replacing\n"
        f"with replacing({str(tmp_path / 'a')!r}, one_writer=True): os._exit(1)"
    )
    for _ in range(3):
        subprocess.run([sys.executable, "-c", program])
    assert len(names(tmp_path)) == 1
    with replacing(tmp_path / "a", one_writer=True) as file:
        file.write(b"new")
    assert names(tmp_path) == ["a"] and (tmp_path / "a").read_bytes() == b"new"


def test_a_long_name_is_written_and_a_link_stays_one(tmp_path):
    long, link = tmp_path / ("ü" * 120 + "\udcff.npz"), tmp_path / "link"  # no UTF-8
    link.symlink_to(long)
    files.check_writable("save", link)
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink() and long.read_bytes() == b"new"
    long.chmod(0o640)
    with replacing(link) as file:
        file.write(b"newer")
    assert long.read_bytes() == b"newer" and long.stat().st_mode & 0o777 == 0o640
    link.unlink()
    link.symlink_to(tmp_path / "nowhere" / "a")
    with pytest.raises(ValueError, match="save: expected a file in a folder that exists, got"):
        files.check_writable("save", link)


@pytest.mark.parametrize("place", ["", "nowhere/a", "a-file/b"])
def test_a_place_where_nothing_can_be_written_is_refused(tmp_path, place):
    (tmp_path / "a-file").write_text("old")
    with pytest.raises(ValueError, match="save: expected a file in a folder that exists, got"):
        files.check_writable("save", tmp_path / place)
    files.check_writable("save", tmp_path / "a-file")
    with pytest.raises(ValueError, match=r"save: expected a writable file, got .*: it is a device"):
        files.check_writable("save", os.devnull)
    (tmp_path / "a-file").chmod(0o444)
    with pytest.raises(ValueError, match=r"writable file, got .*a-file: it is .* read-only"):
        files.check_writable("save", tmp_path / "a-file")
    assert names(tmp_path) == ["a-file"] and (tmp_path / "a-file").read_text() == "old"
