"""Mutants that change nothing, each with the reason; `make break` proves that they still do not.

By lesson, then by what `Mutant.key` says: the object, its line, the broken line, and a number for
the second and later of equal ones.
"""

LONGER = "a longer row holds positions that no result takes"
ROW = "row = np.empty(((z.shape[2] - 1) * W + z.shape[3] - 1) * stride + 1, np.float32)"
ROOM = "more zeros than the border needs, which nobody reads"
WIDE = "wide = np.zeros((F, H + K - 1, W + K - 1), w.dtype)"
TALLER = "wide = np.zeros((F, H + K + 1, W + K - 1), w.dtype)"
WIDER = "wide = np.zeros((F, H + K - 1, W + K + 1), w.dtype)"
TILES = "for q in range(0, z.shape[2], pixels):"
LAST = "a tile is wider than one pixel and divides the row, so the last begins before that, too"
ROW_OF_FOUR = "u += a[4 * i + 2, j]"
WRAPS = "of a number of rows that four divides: the row two before the first of four is a third one"
ZEROS = "one tile more, of zeros"
TILED = "for (int first = 0; first < D; first += 16) {"
PLANES = "for (int first = 0; first < W; first += 16) {"
SHARED = "__shared__ float image[C * PLANE], weights[PARAMETERS], pooled[D], dz[O], losses[O];"
SAME = "with one channel, and K > S, as in the lesson's network"
SUMS = "__shared__ float room[F * (K > S ? K * K : S * S)][WINDOWS | 1];"
WIDEST = "GPU 7 is never the only one over which a way is widest"
WAYS = "ways = {c: sorted((width(a, c), width(c, b))) for c in range(8)}"
STEPS = "for _ in range(steps):"
ENOUGH = "one of hundreds of steps of a descent that has nearly ended"
FAILS = "print(f'a trial failed: {error!r}')"
SEEN = "a reader sees what is printed, and no cell reads it"
EQUIVALENT: dict[tuple[str, str, str, str, int], str] = {
    ("00b_the_machine", "down", ROW_OF_FOUR, ROW_OF_FOUR.replace("+ 2", "- 2"), 0): WRAPS,
    ("02_pooling", "lanes_positions", ROW, ROW.replace("[3] - 1", "[3] + 1"), 0): LONGER,
    ("02_pooling", "lanes_positions", ROW, ROW.replace("[2] - 1", "[2] + 1"), 0): LONGER,
    ("31_shared_memory", "dense_tiled", TILED, TILED.replace("<", "<="), 0): ZEROS,
    ("58_searching", "in_parallel", FAILS, "", 0): SEEN,
    ("63_any_number_of_bits", "plane_product", PLANES, PLANES.replace("<", "<="), 0): ZEROS,
    ("65_eight_devices", "relay", WAYS, WAYS.replace("8", "8 - 1"), 0): WIDEST,
    ("69_code_that_reads_code", "skip_gram", STEPS, STEPS.replace("s)", "s - 1)"), 0): ENOUGH,
    ("12_stationarity", "padded_by_filter", WIDE, TALLER, 0): ROOM,
    ("12_stationarity", "padded_by_filter", WIDE, WIDER, 0): ROOM,
    ("11_reductions", "Log", "self.loop += 1", "self.loop -= 1", 0): "numbers tell loops apart",
    ("33_whole_network", "image_gradients", SHARED, SHARED.replace("C *", "C +"), 0): SAME,
    ("33_whole_network", "image_gradients", SUMS, SUMS.replace("S * S", "S + S"), 0): SAME,
    ("06_registers", "tiles", TILES, TILES.replace("2]", "2] - 1"), 0): LAST,
    ("10_threads", "barrier", "allreduce.let_others_run()", "", 0): "it spins, and is as right",
}
