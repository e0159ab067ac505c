"""The tests mirror the rooms of cnnlab; `tests.source` reads its source for those of the rules."""
