"""Mutants that change nothing, each with the reason; `make break` proves that they still do not.

By lesson, then by what `Mutant.key` says: the object, its line, the broken line, and a number for
the second and later of equal ones.
"""

EQUIVALENT: dict[tuple[str, str, str, str, int], str] = {}
