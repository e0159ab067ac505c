import contextlib

import pytest

from cnnlab.cuda.emulator import compiler
from cnnlab.runtime.files import replacing

TEXT = 'extern "C" int seven() { return 7; }'
OTHER = 'extern "C" int eight() { return 8; }'


def test_on_a_full_disk_a_library_lies_in_a_folder_of_this_process(tmp_path, monkeypatch):
    @contextlib.contextmanager
    def full(path):
        if tmp_path in path.parents:
            raise OSError(28, "No space left on device")
        with replacing(path) as file:
            yield file

    monkeypatch.setattr(compiler.files, "folder", lambda name: tmp_path / name)
    monkeypatch.setattr(compiler, "replacing", full)
    compiler.files.not_kept.cache_clear()
    with pytest.warns(UserWarning, match="compiled kernels are not kept: No space left on device"):
        library = compiler.build(TEXT)
    assert library.exists() and tmp_path not in library.parents
    assert compiler.build(TEXT) == library  # and is not compiled again


def test_a_library_is_compiled_once_for_a_text_and_its_options(tmp_path, monkeypatch):
    monkeypatch.setattr(compiler.files, "folder", lambda name: tmp_path / name)
    library = compiler.build(OTHER)
    made = library.stat().st_mtime_ns
    assert compiler.build(OTHER) == library and library.stat().st_mtime_ns == made
    assert compiler.build(OTHER, ("-O1",)) != library
    assert len(list((tmp_path / "cuda").iterdir())) == 2
