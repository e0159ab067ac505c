import os
import stat

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


def test_a_folder_that_is_missing_raises_oserror(tmp_path):
    with pytest.raises(OSError), replacing(tmp_path / "nowhere" / "a"):
        pytest.fail("nothing can be written there")


@pytest.mark.skipif(os.name != "posix", reason="permissions as on Unix")
def test_the_file_can_be_read_by_those_whom_the_umask_allows(tmp_path):
    before = os.umask(0o022)
    try:
        with replacing(tmp_path / "a"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644
