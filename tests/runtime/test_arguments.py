"""Arguments that are refused by name, lists of names, and tables as text."""

import argparse
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cnnlab.runtime.arguments import (  # isort: skip
    Entry, at_least, find, listed, one_of, parse_positive, parse_whole, positive, table,
)  # fmt: skip


@pytest.mark.parametrize("value", [1, -1, 2.0, np.float32(3), True, "3", None])
def test_only_whole_numbers_from_the_least_pass(value):
    for good in (2, 3, np.int32(2)):
        at_least("n", good, 2)
    message = f"^n: expected a whole number of at least 2, got {re.escape(repr(value))}$"
    with pytest.raises(ValueError, match=message):
        at_least("n", value, 2)


@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan"), "1", None, 1j])
def test_only_positive_numbers_pass(value):
    for good in (1, 0.1, np.float32(2), 1e300):
        positive("rate", good)
    message = f"^rate: expected a positive number, got {re.escape(repr(value))}$"
    with pytest.raises(ValueError, match=message):
        positive("rate", value)


@pytest.mark.parametrize(
    "parse, text, expected",
    [
        (parse_whole, "0", "a whole number of at least 1, got 0"),
        (parse_whole, "1.5", "a whole number of at least 1, got '1.5'"),
        (parse_positive, "-1", "a positive number, got -1.0"),
        (parse_positive, "nan", "a positive number, got nan"),
        (parse_positive, "fast", "a positive number, got 'fast'"),
    ],
)
def test_an_options_text_is_a_number_or_argparses_error(parse, text, expected):
    assert parse("12") == 12
    with pytest.raises(argparse.ArgumentTypeError, match=f"^expected {re.escape(expected)}$"):
        parse(text)


KNOWN = listed(
    Entry("path", "where files lie", "pathlib:Path"), Entry("none", "not there", "nowhere:Class")
)


def test_an_entry_is_looked_up_by_its_name_or_refused_with_the_known_ones():
    assert find("kind", "path", KNOWN) is Path
    assert list(KNOWN) == ["path", "none"] and KNOWN["path"].summary == "where files lie"
    one_of("kind", "max", {"max": 1, "average": 2})
    for look in (find, one_of):
        for name in ("other", None):
            text = f"^kind: expected one of path, none, got {name!r}"
            with pytest.raises(ValueError, match=text):
                look("kind", name, KNOWN)


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


def test_columns_of_a_table_are_aligned_and_lines_end_without_spaces():
    rows = [("strategy", "seconds"), ("loops", "12.5"), ("device, fused", "0.3")]
    left = ["strategy       seconds", "loops          12.5", "device, fused  0.3"]
    right = ["strategy       seconds", "loops             12.5", "device, fused      0.3"]
    assert (table(rows).split("\n"), table(rows, "<>").split("\n")) == (left, right)
    for wrong in ([("a", "b"), ("c",)], ""), ([("a", "b")], "<"):
        with pytest.raises(ValueError):
            table(*wrong)
