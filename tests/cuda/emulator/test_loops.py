"""Loops that count: the rewritten source; what the counts are for is tested in test_trace.py."""

import pytest

from cnnlab.cuda.emulator.loops import counted

HEAD = "for (emulator::Loop emulator_loop(1); emulator_loop.once();) "


@pytest.mark.parametrize(
    "source, expected",
    [
        ("for (;;) f();", HEAD + "for (; emulator_loop.next();) f();"),
        (
            "for (int i = 0; a[i];\n i++) f();",
            HEAD + "for (int i = 0; emulator_loop.next() && ( a[i]);\n i++) f();",
        ),
        ("while (g(i)) f();", HEAD + "while (emulator_loop.next() && (g(i))) f();"),
        ("do { f(); } while (i);", HEAD + "do {emulator_loop.next(); f(); } while (i);"),
    ],
)
def test_each_kind_of_loop_counts_and_keeps_its_lines(source, expected):
    assert counted(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "do f(); while (i);",
        "for (float v : values) f(v);",
        "constexpr int f(int n) { while (n > 9) n /= 2; return n; }",
        "int format = 1, whiles = do_it(format);",
        'char open[] = "for (int i";',
    ],
)
def test_other_loops_stay_as_they_are(source):
    assert counted(source) == source
