"""Mutants that change nothing, each with the reason; `make break` proves that they still do not.

By lesson, then by what `Mutant.key` says: the object, its line, the broken line, and a number for
the second and later of equal ones.
"""

WAITS = "a rank that the fold leaves out only waits: without that round its messages are the same"
LONGER = "a longer row holds positions that no result takes"
ROW = "row = np.empty(((z.shape[2] - 1) * W + z.shape[3] - 1) * stride + 1, np.float32)"
EQUIVALENT: dict[tuple[str, str, str, str, int], str] = {
    ("02_pooling", "lanes_positions", ROW, ROW.replace("[3] - 1", "[3] + 1"), 0): LONGER,
    ("02_pooling", "lanes_positions", ROW, ROW.replace("[2] - 1", "[2] + 1"), 0): LONGER,
    ("23_allreduce", "fold", "yield IDLE", "", 0): WAITS,
    ("23_allreduce", "unfold", "yield IDLE", "", 0): WAITS,
}
