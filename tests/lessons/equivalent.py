"""Mutants that change nothing, each with the reason; `make break` proves that they still do not.

By lesson, then by what `Mutant.key` says: the object, its line, the broken line, and a number for
the second and later of equal ones.
"""

WAITS = "a rank that the fold leaves out only waits: without that round its messages are the same"
ROOM = "more zeros than the border needs, which nobody reads"
WIDE = "wide = np.zeros((F, H + K - 1, W + K - 1), w.dtype)"
TALLER = "wide = np.zeros((F, H + K + 1, W + K - 1), w.dtype)"
WIDER = "wide = np.zeros((F, H + K - 1, W + K + 1), w.dtype)"
EQUIVALENT: dict[tuple[str, str, str, str, int], str] = {
    ("23_allreduce", "fold", "yield IDLE", "", 0): WAITS,
    ("23_allreduce", "unfold", "yield IDLE", "", 0): WAITS,
    ("12_stationarity", "no_bounds", WIDE, TALLER, 0): ROOM,
    ("12_stationarity", "no_bounds", WIDE, WIDER, 0): ROOM,
    ("12_stationarity", "sum_a_filter", WIDE, TALLER, 0): ROOM,
    ("12_stationarity", "sum_a_filter", WIDE, WIDER, 0): ROOM,
}
