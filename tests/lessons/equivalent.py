"""Mutants that change nothing, each with the reason; `make break` proves that they still do not.

By lesson, then by what `Mutant.key` says: the object, its line, the broken line, and a number for
the second and later of equal ones.
"""

WAITS = "a rank that the fold leaves out only waits: without that round its messages are the same"
EQUIVALENT: dict[tuple[str, str, str, str, int], str] = {
    ("23_allreduce", "fold", "yield IDLE", "", 0): WAITS,
    ("23_allreduce", "unfold", "yield IDLE", "", 0): WAITS,
}
