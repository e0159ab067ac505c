"""Mutants that change nothing, each with the reason; `make break` proves that they still do not.

By lesson, then by what `Mutant.key` says: the object, its line, the broken line, and a number for
the second and later of equal ones.
"""

WAITS = "a rank that the fold leaves out only waits: without that round its messages are the same"
WIDER = "a tile is wider than one pixel and divides the row, so the last begins before that, too"
EQUIVALENT: dict[tuple[str, str, str, str, int], str] = {
    ("23_allreduce", "fold", "yield IDLE", "", 0): WAITS,
    ("23_allreduce", "unfold", "yield IDLE", "", 0): WAITS,
    (
        "06_registers",
        "tiles",
        "for q in range(0, z.shape[2], pixels):",
        "for q in range(0, z.shape[2] - 1, pixels):",
        0,
    ): WIDER,
}
