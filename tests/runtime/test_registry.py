import subprocess
import sys

import pytest

from cnnlab.runtime.arguments import Entry, find, listed

KNOWN = listed(
    Entry("path", "where files lie", "pathlib:Path"), Entry("none", "not there", "nowhere:Thing")
)


def test_an_entry_is_found_by_its_name_and_loaded():
    from pathlib import Path

    assert find("kind", "path", KNOWN) is Path
    assert list(KNOWN) == ["path", "none"] and KNOWN["path"].summary == "where files lie"


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"^kind: expected one of path, none, got 'other'$"):
        find("kind", "other", KNOWN)


def test_code_is_imported_only_by_load():
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        KNOWN["none"].load()
    program = (
        "import sys; from cnnlab.runtime.arguments import Entry;"
        "entry = Entry('a', '', 'wave:open'); before = 'wave' in sys.modules; entry.load();"
        "print(before, 'wave' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True"], done.stderr
